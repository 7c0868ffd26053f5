#include "rockmate/planners/checkmate.h"

#include <limits>

#include "rockmate/planners/program_solve.h"
#include "rockmate/planners/stage_program.h"
#include "rockmate/solvers/sequence_memory.h"

namespace rockmate {

PlannerAnswer checkmate(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  PlannerAnswer answer;
  const std::vector<OpId> plain = store_all_sequence(graph);
  if (SequenceMemory(graph, plain).peak_bytes() <= budget_bytes) {
    answer.sequence = plain;
    answer.proved = true;
    return answer;
  }
  const StageProgram program(graph, budget_bytes);
  if (program.too_large()) {
    answer.note = "checkmate's program has more than 20 million nonzeros for this graph: use rockmate or hiremate";
    return answer;
  }
  answer.proved = program.infeasible();
  if (program.infeasible()) return answer;

  answer.sequence = evicted_sequence(graph, budget_bytes, context);
  ilp::SolveOptions how;
  how.time_limit_s = context.seconds_left();
  how.node_limit = std::numeric_limits<int>::max();
  how.relative_gap = 1e-5;
  if (!answer.sequence.empty()) how.start = program.start(answer.sequence);
  const ilp::Outcome outcome = solve_within(context, "program", program.model(), how);
  answer.proved = outcome.status == ilp::Status::kOptimal || outcome.status == ilp::Status::kInfeasible;
  if (!outcome.values.empty()) {
    std::vector<OpId> found = program.sequence(outcome.values);
    const bool fits = SequenceMemory(graph, found).peak_bytes() <= budget_bytes;
    if (!fits) answer.proved = false;  // the solver's tolerances let a few bytes too many pass
    const bool better = answer.sequence.empty() || sequence_time_us(graph, found) < sequence_time_us(graph, answer.sequence);
    if (fits && (better || answer.proved)) answer.sequence = std::move(found);
  }
  return answer;
}

}  // namespace rockmate

#include "rockmate/planners/program_solve.h"

#include <atomic>
#include <limits>

#include "rockmate/planner/background.h"
#include "rockmate/planners/lower_bound.h"
#include "rockmate/solvers/evict.h"
#include "rockmate/solvers/keep.h"
#include "rockmate/solvers/sequence_memory.h"

namespace rockmate {
ilp::Outcome solve_within(const PlannerContext& context, const std::string& stage, const ilp::Model& model,
                          ilp::SolveOptions options) {
  const double seconds = std::min(options.time_limit_s, context.seconds_left());
  std::atomic<bool> stop{false};
  options.stop = &stop;
  options.time_limit_s = seconds;
  ilp::Outcome outcome;
  const PlannerContext own = context.within(seconds);
  run_watched([&] { outcome = ilp::solve(model, options); },
              [&] {
                if (!own.progress(stage, 1 - own.seconds_left() / std::max(seconds, 1e-3))) stop = true;
              });
  return outcome;
}

std::vector<OpId> evicted_sequence(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  const auto go_on = [&](const std::vector<OpId>&, Bytes) { return !context.expired(); };
  std::vector<OpId> sequence = evict(graph, store_all_sequence(graph), budget_bytes, go_on);
  if (SequenceMemory(graph, sequence).peak_bytes() > budget_bytes) return {};
  return keep_within(graph, std::move(sequence), budget_bytes);
}

bool at_the_bound(const TrainingGraph& graph, Micros bound_us, const ProgramSearch& search) {
  if (search.sequence.empty()) return false;
  const Micros recompute_us = search.time_us - sequence_time_us(graph, store_all_sequence(graph));
  return recompute_us <= bound_us * (1 + kOptimalGap);
}

void solve_program(const TrainingGraph& graph, Bytes budget_bytes, const StageProgramOptions& options, double most_seconds,
                   const PlannerContext& context, ProgramSearch& search) {
  StageProgramOptions limited = options;
  limited.most_nonzeros = std::min(limited.most_nonzeros, static_cast<std::int64_t>(kNonzerosPerSecond * most_seconds));
  const StageProgram program(graph, budget_bytes, limited);
  search.too_large = program.too_large();
  search.proved = program.infeasible() && options.negligible_bytes == 0;
  if (program.too_large() || program.infeasible()) return;
  ilp::SolveOptions how;
  how.time_limit_s = most_seconds;
  how.node_limit = std::numeric_limits<int>::max();
  how.relative_gap = 1e-5;
  if (!search.sequence.empty()) how.start = program.start(search.sequence);
  const ilp::Outcome outcome = solve_within(context, "program", program.model(), how);
  const bool solved = outcome.status == ilp::Status::kOptimal || outcome.status == ilp::Status::kInfeasible;
  search.proved = solved && options.negligible_bytes == 0;
  if (outcome.values.empty()) return;
  const std::vector<OpId> found = without_dead_recomputations(graph, program.sequence(outcome.values));
  const Micros time_us = sequence_time_us(graph, found);
  if (SequenceMemory(graph, found).peak_bytes() > budget_bytes) {
    search.proved = false;  // the solver's tolerances let a few bytes too many pass
  } else if (search.sequence.empty() || time_us < search.time_us) {
    search.sequence = found;
    search.time_us = time_us;
  }
}

}  // namespace rockmate

#include "rockmate/planners/checkmate.h"

#include "rockmate/planners/lower_bound.h"
#include "rockmate/planners/program_solve.h"
#include "rockmate/planners/store_all.h"
#include "rockmate/solvers/sequence_memory.h"

namespace rockmate {

PlannerAnswer checkmate(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  if (auto plain = store_all_within(graph, budget_bytes)) return *plain;
  PlannerAnswer answer;
  ProgramSearch search;
  search.sequence = evicted_sequence(graph, budget_bytes, context);
  if (!search.sequence.empty()) search.time_us = sequence_time_us(graph, search.sequence);
  // A start for the whole program: one in which ops run again only for a read that is near, and small values are not asked for.
  const StageProgramOptions part{.reach = 3, .negligible_bytes = budget_bytes / kNegligibleShare};
  solve_program(graph, budget_bytes, part, context.seconds_left() * 0.3, context, search);
  answer.proved = at_the_bound(graph, lower_bound_us(graph, budget_bytes), search);
  if (!answer.proved && !context.expired()) {
    solve_program(graph, budget_bytes, {}, context.seconds_left(), context, search);
    answer.proved = search.proved;
    if (search.too_large) {
      answer.note = "checkmate's program is too large for this graph in this time; the plan is of a part of it";
    }
  }
  answer.sequence = search.sequence;
  return answer;
}

}  // namespace rockmate

#include "rockmate/planners/moccasin.h"

#include <algorithm>

#include "rockmate/planners/lower_bound.h"
#include "rockmate/planners/program_solve.h"
#include "rockmate/planners/store_all.h"
#include "rockmate/solvers/sequence_memory.h"

namespace rockmate {
namespace {

bool at_most_twice(const TrainingGraph& graph, const std::vector<OpId>& sequence) {
  std::vector<int> count(graph.num_ops(), 0);
  return std::all_of(sequence.begin(), sequence.end(), [&](OpId op) { return ++count[op] <= 2; });
}

}  // namespace

PlannerAnswer moccasin(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  if (auto plain = store_all_within(graph, budget_bytes)) return *plain;
  PlannerAnswer answer;
  const Micros bound_us = lower_bound_us(graph, budget_bytes);
  ProgramSearch search;
  search.sequence = evicted_sequence(graph, budget_bytes, context);
  if (!at_most_twice(graph, search.sequence)) search.sequence.clear();
  if (!search.sequence.empty()) search.time_us = sequence_time_us(graph, search.sequence);
  // The last one reaches everything. First ones do not ask for small values.
  struct Step {
    int reach;
    Bytes share;
  };
  for (const auto& [reach, share] : {Step{2, kNegligibleShare}, {3, kNegligibleShare}, {3, 0}, {5, 0}, {graph.num_ops(), 0}}) {
    if (context.expired() || answer.proved) break;
    const bool last = reach == graph.num_ops();
    const double seconds = context.seconds_left() * (last ? 1 : 0.4);
    StageProgramOptions options{.reach = reach, .most_recomputes = 1};
    if (share > 0) options.negligible_bytes = budget_bytes / share;
    solve_program(graph, budget_bytes, options, seconds, context, search);
    answer.proved = (last && search.proved) || at_the_bound(graph, bound_us, search);
    if (search.too_large) {
      answer.note = "moccasin's program is too large for this graph in this time; the plan is of a part of it";
      break;
    }
  }
  answer.sequence = search.sequence;
  return answer;
}

}  // namespace rockmate

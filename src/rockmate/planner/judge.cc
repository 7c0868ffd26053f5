#include "rockmate/planner/judge.h"

#include <cassert>

#include "rockmate/schedule/verifier.h"

namespace rockmate {

std::optional<Plan> judged_plan(const TrainingGraph& graph, const std::vector<OpId>& sequence, const std::string& planner) {
  Plan plan;
  plan.sequence = without_dead_recomputations(graph, sequence);
  plan.schedule = schedule_from_sequence(graph, plan.sequence);
  if (verify(graph, plan.schedule).has_value()) {
    assert(false && "a solver made a schedule that the verifier refuses");
    return std::nullopt;
  }
  const Simulation simulation = simulate(graph, plan.schedule);
  plan.peak_bytes = simulation.peak_bytes;
  plan.time_us = simulation.time_us;
  plan.overhead = simulation.overhead();
  plan.num_recomputed = simulation.num_recomputed;
  plan.planner = planner;
  return plan;
}

}  // namespace rockmate

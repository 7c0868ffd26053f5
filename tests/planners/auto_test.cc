// What planner auto promises beyond its plan.
#include "rockmate/planners/auto.h"

#include <doctest/doctest.h>

#include "rockmate/planners/lower_bound.h"
#include "rockmate/schedule/simulator.h"
#include "tests/solvers/random_graph.h"

using namespace rockmate;

namespace {

PlannerResult ask(const TrainingGraph& graph, Bytes budget_bytes) {
  PlannerOptions options;
  options.threads = 1;
  options.polish_s = 0.05;
  return run_planner(find_planner("auto"), graph, budget_bytes, PlannerContext(options));
}

}  // namespace

TEST_CASE("the least budget that auto names is met when it is asked for") {
  for (unsigned seed = 0; seed < 2; ++seed) {
    const TrainingGraph graph = testing::random_graph(30, seed, seed % 2 == 0);
    const PlannerResult refused = ask(graph, peak_floor(graph) / 2);
    REQUIRE(refused.status == PlannerStatus::kInfeasible);
    REQUIRE(refused.min_budget_bytes > 0);
    const PlannerResult met = ask(graph, refused.min_budget_bytes);
    REQUIRE(met.plan);
    CHECK(met.plan->peak_bytes <= refused.min_budget_bytes);
    const PlannerResult below = ask(graph, (peak_floor(graph) + refused.min_budget_bytes) / 2);
    if (!below.plan) CHECK(below.min_budget_bytes == refused.min_budget_bytes);
  }
}

// What planner auto promises beyond its plan.
#include "rockmate/planners/auto.h"

#include <doctest/doctest.h>

#include "rockmate/planner/judge.h"
#include "rockmate/planners/lower_bound.h"
#include "rockmate/schedule/simulator.h"
#include "tests/planner/model_graphs.h"
#include "tests/solvers/random_graph.h"

using namespace rockmate;

namespace {

PlannerResult planned(const TrainingGraph& graph, Bytes budget_bytes) {
  PlannerOptions options;
  options.threads = 1;
  options.polish_s = 0.05;
  return run_planner(find_planner("auto"), graph, budget_bytes, PlannerContext(options));
}

}  // namespace

TEST_CASE("the least budget that auto names is met when it is asked for") {
  for (unsigned seed = 0; seed < 2; ++seed) {
    const TrainingGraph graph = testing::random_graph(30, seed, seed % 2 == 0);
    const PlannerResult refused = planned(graph, peak_floor(graph) / 2);
    REQUIRE(refused.status == PlannerStatus::kInfeasible);
    REQUIRE(refused.min_budget_bytes > 0);
    const PlannerResult met = planned(graph, refused.min_budget_bytes);
    REQUIRE(met.plan);
    CHECK(met.plan->peak_bytes <= refused.min_budget_bytes);
    const PlannerResult below = planned(graph, (peak_floor(graph) + refused.min_budget_bytes) / 2);
    if (!below.plan) CHECK(below.min_budget_bytes == refused.min_budget_bytes);
  }
}

TEST_CASE("auto is never worse than fastsa, which finds the same plan every time") {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const TrainingGraph graph = testing::random_graph(40, seed, seed % 2 == 0);
    const Bytes floor_bytes = peak_floor(graph),
                plain_bytes = judged_plan(graph, store_all_sequence(graph), "plain")->peak_bytes;
    PlannerOptions options;
    options.threads = 2;
    options.polish_s = 0.05;
    const auto ask_for = [&](const char* planner, double share) {
      const auto budget_bytes = floor_bytes + static_cast<Bytes>(share * static_cast<double>(plain_bytes - floor_bytes));
      return run_planner(find_planner(planner), graph, budget_bytes, PlannerContext(options));
    };
    for (double share : {0.6, 0.3}) {
      const PlannerResult once = ask_for("fastsa", share), again = ask_for("fastsa", share), ours = ask_for("auto", share);
      REQUIRE(once.plan.has_value() == again.plan.has_value());
      if (!once.plan) continue;
      CHECK(once.plan->time_us == again.plan->time_us);
      CHECK(once.plan->sequence == again.plan->sequence);
      REQUIRE(ours.plan);
      CHECK(ours.plan->time_us <= once.plan->time_us);
    }
  }
}

TEST_CASE("a graph in one pass has plans near its least budget too") {
  PlannerOptions options;
  options.threads = 1;
  options.time_limit_s = 4;
  for (const TrainingGraph& graph : {testing::in_one_pass(testing::transformer(6)), testing::in_one_pass(testing::unet(6))}) {
    const PlannerResult refused = planned(graph, peak_floor(graph) / 2);
    REQUIRE(refused.min_budget_bytes > 0);
    for (const Bytes percent : {105, 150}) {
      const Bytes budget = refused.min_budget_bytes * percent / 100;
      const PlannerResult met = run_planner(find_planner("auto"), graph, budget, PlannerContext(options));
      REQUIRE(met.plan);
      CHECK(met.plan->peak_bytes <= budget);
    }
  }
}

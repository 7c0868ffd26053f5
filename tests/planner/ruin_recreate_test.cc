#include "rockmate/planner/ruin_recreate.h"

#include <doctest/doctest.h>

#include "rockmate/planner/judge.h"
#include "rockmate/planner/planner.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;
using namespace rockmate::testing;

namespace {

RuinOptions rounds(Bytes budget, std::int64_t count) {
  RuinOptions options;
  options.budget_bytes = budget;
  options.seconds = 1000;
  options.max_rounds = count;
  return options;
}

}  // namespace

TEST_CASE("ruin and recreate ends within the budget, no slower than it began, the same every time") {
  for (const TrainingGraph& graph : {transformer(4), unet(4), random_step(25, 3)}) {
    const PlanCurve curve = plan_curve(graph);
    const Bytes budget = (curve.store_all_peak_bytes + 3 * curve.min_budget_bytes()) / 4;
    const Plan& start = *curve.at(budget);
    const std::vector<OpId> found = ruin_and_recreate(graph, start.sequence, rounds(budget, 40));
    CHECK(found == ruin_and_recreate(graph, start.sequence, rounds(budget, 40)));
    const std::optional<Plan> plan = judged_plan(graph, found, "ruin");
    REQUIRE(plan.has_value());
    CHECK(plan->peak_bytes <= budget);
    CHECK(plan->time_us <= start.time_us);
  }
}

TEST_CASE("ruin and recreate leaves what it can't improve: above the budget, without recomputations, stopped") {
  const TrainingGraph graph = transformer(4);
  const PlanCurve curve = plan_curve(graph);
  const std::vector<OpId>& plain = curve.plans.back().sequence;
  CHECK(ruin_and_recreate(graph, plain, rounds(curve.min_budget_bytes(), 5)) == plain);
  CHECK(ruin_and_recreate(graph, plain, rounds(curve.store_all_peak_bytes, 5)) == plain);
  const std::atomic<bool> stop{true};
  RuinOptions options = rounds(curve.min_budget_bytes(), 5);
  options.stop = &stop;
  const std::vector<OpId>& lowest = curve.plans.front().sequence;
  CHECK(ruin_and_recreate(graph, lowest, options) == lowest);
}

#include "rockmate/planner/descents.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "rockmate/planner/judge.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;
using namespace rockmate::testing;

namespace {

std::vector<const std::vector<OpId>*> sequences_above(const PlanCurve& curve, Bytes budget) {
  std::vector<const std::vector<OpId>*> starts;
  for (const Plan& plan : curve.plans) {
    if (plan.peak_bytes > budget) starts.push_back(&plan.sequence);
  }
  return starts;
}

}  // namespace

TEST_CASE("descents end within the budget where eviction gets there, the same on any number of threads") {
  for (const TrainingGraph& graph : {transformer(4), unet(4), random_step(25, 3)}) {
    const PlanCurve curve = plan_curve(graph);
    const Bytes budget = (curve.store_all_peak_bytes + curve.min_budget_bytes()) / 2;
    const std::vector<const std::vector<OpId>*> starts = sequences_above(curve, budget);
    const std::atomic<bool> stop{false};
    const std::vector<std::vector<OpId>> found = descents(graph, starts, budget, 2, stop);
    CHECK(found == descents(graph, starts, budget, 1, stop));
    REQUIRE(found.size() >= starts.size());
    const auto meets = [&](const std::vector<OpId>& sequence) {
      const std::optional<Plan> plan = judged_plan(graph, sequence, "evict");
      REQUIRE(plan.has_value());
      return plan->peak_bytes <= budget;
    };
    CHECK(std::any_of(found.begin(), found.end(), meets));
  }
}

TEST_CASE("stopped descents leave out what was not begun") {
  const TrainingGraph graph = transformer(4);
  const PlanCurve curve = plan_curve(graph);
  const std::atomic<bool> stop{true};
  const auto starts = sequences_above(curve, curve.store_all_peak_bytes / 2);
  const std::vector<std::vector<OpId>> found = descents(graph, starts, curve.store_all_peak_bytes / 2, 2, stop);
  CHECK(std::all_of(found.begin(), found.end(), [](const auto& sequence) { return sequence.empty(); }));
}

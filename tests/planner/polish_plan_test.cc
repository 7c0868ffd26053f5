#include "rockmate/planner/polish_plan.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "rockmate/schedule/verifier.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;
using namespace rockmate::testing;

TEST_CASE("a polished plan is within the budget, judged, and never slower than the curve's") {
  bool is_faster = false;
  for (const TrainingGraph& graph : {transformer(3), unet(4), random_step(25, 3), random_step(40, 7)}) {
    const PlanCurve curve = plan_curve(graph);
    for (int percent = 90; percent >= 20; percent -= 10) {
      const Bytes budget = curve.store_all_peak_bytes * percent / 100;
      const Plan* within = curve.at(budget);
      if (within == nullptr) continue;
      CAPTURE(percent);
      const Plan polished = polished_plan(graph, curve, budget);
      CHECK_FALSE(verify(graph, polished.schedule).has_value());
      const Simulation simulation = simulate(graph, polished.schedule);
      CHECK(polished.peak_bytes == simulation.peak_bytes);
      CHECK(polished.time_us == simulation.time_us);
      CHECK(polished.peak_bytes <= budget);
      CHECK(polished.time_us <= within->time_us);
      is_faster |= polished.time_us < within->time_us;
    }
  }
  CHECK(is_faster);
}

TEST_CASE("polishing gives the same plan every time, on any number of threads") {
  const TrainingGraph graph = unet(4);
  const PlanCurve curve = plan_curve(graph);
  const Bytes budget = curve.store_all_peak_bytes / 2;
  PlannerOptions options;
  options.threads = 1;
  const Plan one = polished_plan(graph, curve, budget, options);
  options.threads = 4;
  CHECK(one.sequence == polished_plan(graph, curve, budget, options).sequence);
}

TEST_CASE("what recomputes nothing stays as it is, and a budget without a plan is refused") {
  const TrainingGraph graph = transformer(3);
  const PlanCurve curve = plan_curve(graph);
  CHECK(polished_plan(graph, curve, curve.store_all_peak_bytes).sequence == curve.plans.back().sequence);
  CHECK_THROWS_AS(polished_plan(graph, curve, curve.min_budget_bytes() - 1), std::invalid_argument);
}

TEST_CASE("polishing can be stopped") {
  const TrainingGraph graph = transformer(12);
  const PlanCurve curve = plan_curve(graph);
  PlannerOptions options;
  options.on_progress = [](const Progress&) { return false; };
  CHECK_THROWS_AS(polished_plan(graph, curve, curve.store_all_peak_bytes / 2, options), Interrupted);
}

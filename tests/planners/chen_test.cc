#include "rockmate/planners/chen.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rockmate/planner/judge.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;

namespace {

// n ops of 100 bytes and time 1, whose backward (time 2) reads their input.
TrainingGraph equal_chain(int n) {
  testing::StepBuilder step;
  ValueId x = step.input(100);
  for (int i = 0; i < n; ++i) x = step.op("f", {x}, {.bytes = 100, .time_us = 1, .saves_inputs = true});
  return step.finish();
}

PlannerResult run(const char* planner, const TrainingGraph& graph, Bytes budget) {
  return run_planner(find_planner(planner), graph, budget, PlannerContext(PlannerOptions{}));
}

}  // namespace

TEST_CASE("Chen's segments end at the first candidate that exceeds b") {
  const std::vector<Bytes> sizes(6, 3);
  const std::vector<OpId> anywhere{0, 1, 2, 3, 4};
  CHECK(chen_segments(sizes, anywhere, 5) == std::vector<OpId>{2, 4});  // [3 3] [3 3] [3 3]
  CHECK(chen_segments(sizes, anywhere, 6) == std::vector<OpId>{3});     // [3 3 3] [3 3 3]
  CHECK(chen_segments(sizes, {0, 2, 3}, 5) == std::vector<OpId>{3});    // no cut after ops 1 and 4
  CHECK(chen_segments(sizes, anywhere, 18).empty());                    // one segment
  CHECK(chen_segments({3, 0, 9, 1, 1, 1}, anywhere, 2) == std::vector<OpId>{1, 3});
}

TEST_CASE("Chen on n equal ops: about 2 sqrt(n) values, less than one more forward pass") {
  for (int n : {16, 64, 144}) {
    CAPTURE(n);
    const TrainingGraph graph = equal_chain(n);
    const PlannerResult least = run("chen-sqrt", graph, 1);
    CHECK_FALSE(least.plan);
    // sqrt(n) - 1 borders, the inner values of one segment and two gradients; the loss counts for one.
    CHECK(least.min_budget_bytes <= 100 * static_cast<Bytes>(2 * std::sqrt(n) + 2));
    const PlannerResult there = run("chen-sqrt", graph, least.min_budget_bytes);
    REQUIRE(there.plan);
    CHECK(there.plan->num_recomputed < n);
    CHECK(there.plan->overhead <= 1.0 / 3);
  }
}

TEST_CASE("Chen's recursion on n equal ops: memory grows with log n, the forward pass is run about log n times") {
  Bytes before = 0;
  for (int n : {16, 64, 256}) {
    CAPTURE(n);
    const TrainingGraph graph = equal_chain(n);
    const PlannerResult least = run("chen-recursive", graph, 1);
    const double levels = std::log2(n);
    CHECK(least.min_budget_bytes <= 100 * static_cast<Bytes>(levels + 5));
    if (before > 0) CHECK(least.min_budget_bytes <= before + 300);
    before = least.min_budget_bytes;
    const PlannerResult there = run("chen-recursive", graph, least.min_budget_bytes);
    REQUIRE(there.plan);
    CHECK(there.plan->num_recomputed <= n * levels);
  }
}

TEST_CASE("segments on graphs that no value alone divides") {
  const TrainingGraph graph = testing::unet(3);
  const Plan plain = *judged_plan(graph, store_all_sequence(graph), "");
  for (const char* planner : {"chen-sqrt", "chen-recursive"}) {
    CAPTURE(planner);
    CHECK(run(planner, graph, plain.peak_bytes * 8 / 10).plan);
  }
}

#include "rockmate/planners/memory_budget.h"

#include <doctest/doctest.h>

#include "rockmate/planner/judge.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;

namespace {

PlannerResult run(const TrainingGraph& graph, Bytes budget) {
  return run_planner(find_planner("memory-budget"), graph, budget, PlannerContext(PlannerOptions{}));
}

std::vector<int> computes_of(const TrainingGraph& graph, const Plan& plan) {
  std::vector<int> computes(graph.ops.size(), 0);
  for (OpId op : plan.sequence) ++computes[op];
  return computes;
}

}  // namespace

TEST_CASE("what is not saved is recomputed once, when it is first read") {
  // f0 .. f3, each backward reads the input of its op: b3 (op 4) reads f2's result, b2 (5) f1's, b1 (6) f0's, b0 (7) nothing.
  testing::StepBuilder step;
  ValueId x = step.input(1);
  for (int i = 0; i < 4; ++i) x = step.op("f", {x}, {.bytes = 10, .saves_inputs = true});
  const TrainingGraph graph = step.finish();
  std::vector<bool> saved(graph.num_values(), false);
  CHECK(sequence_with_saved(graph, saved) == std::vector<OpId>{0, 1, 2, 3, 0, 1, 2, 4, 5, 6, 7});
  saved[graph.ops[1].outputs[0]] = true;
  CHECK(sequence_with_saved(graph, saved) == std::vector<OpId>{0, 1, 2, 3, 2, 4, 5, 0, 6, 7});
}

TEST_CASE("matrix products are kept, what is cheap between them is recomputed") {
  TrainingGraph graph = testing::plain_chain(6);
  for (Op& op : graph.ops) op.flops = op.target == "linear" ? 1e6 : 0;
  const Plan plain = *judged_plan(graph, store_all_sequence(graph), "");
  // Each relu's result is read by its own backward and the next linear's; the linear's result by nobody. Saving the latter
  // frees nothing, so plain is the best that a min cut without recomputed products has.
  const PlannerResult result = run(graph, plain.peak_bytes * 7 / 10);
  REQUIRE(result.plan);
  CHECK(result.plan->peak_bytes <= plain.peak_bytes * 7 / 10);
  CHECK(result.plan->overhead > 0);
}

TEST_CASE("the knapsack keeps what is worth most") {
  // Four products of equal size, the backward of the next op reads each; the second is by far the cheapest to make again.
  testing::StepBuilder step;
  ValueId x = step.input(1);
  const Micros times[] = {40, 5, 60, 50, 30};
  for (Micros time_us : times) x = step.op("linear", {x}, {.bytes = 100, .time_us = time_us, .saves_inputs = true});
  step.op("loss", {x}, {.bytes = 1, .time_us = 1, .saves_inputs = true});
  const TrainingGraph graph = step.finish();
  const Plan plain = *judged_plan(graph, store_all_sequence(graph), "");
  const PlannerResult result = run(graph, plain.peak_bytes - 100);
  REQUIRE(result.plan);
  CHECK(computes_of(graph, *result.plan) == std::vector<int>{1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("ops with side effects are never recomputed, what leaves the step is not saved twice") {
  TrainingGraph graph = testing::plain_chain(6);
  for (Op& op : graph.ops) op.recomputable = op.target != "relu";
  const Plan plain = *judged_plan(graph, store_all_sequence(graph), "");
  const PlannerResult result = run(graph, plain.peak_bytes / 2);
  CHECK_FALSE(result.plan);  // every relu's result is read by the backward and can't be made again
  CHECK(result.min_budget_bytes == plain.peak_bytes);
}

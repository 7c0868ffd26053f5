// The quick planners on steps with everything that a step may have: random ops, side effects, values that leave the forward
// pass or the step, several outputs, unread values, workspaces. Whatever they return is a training step within the budget.
#include <doctest/doctest.h>

#include "rockmate/planners/planners.h"
#include "rockmate/schedule/simulator.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;

namespace {

const char* const kPlanners[] = {"chen-sqrt", "chen-recursive", "kusumoto", "rotor", "rotor-layers", "dtr", "memory-budget"};

TrainingGraph odd_step(int ops, unsigned seed) {
  TrainingGraph graph = testing::random_step(ops, seed);
  std::mt19937 random(seed);
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  for (Op& op : graph.ops) {
    op.is_random = one_in(5);
    op.recomputable = !one_in(9);
    op.workspace_bytes += one_in(3) ? 4 : 0;
    if (op.pass == Pass::kForward && one_in(3)) op.flops = 1;
  }
  for (OpId op = 0; op < num_forward_ops(graph); ++op) {
    Value& value = graph.values[graph.ops[op].outputs[0]];
    if (one_in(9)) value.retention = Retention::kUntilForwardEnd;
    if (one_in(9)) value.retention = Retention::kUntilStepEnd;
  }
  // A tangent that nothing reads, and one whose output the user holds on to.
  graph.values.push_back({"unread", 6, ValueKind::kTangent});
  graph.values.push_back({"held", 3, ValueKind::kTangent, Retention::kUntilStepEnd});
  graph.rng_state_bytes = static_cast<Bytes>(seed % 3);
  return graph;
}

Bytes plain_peak(const TrainingGraph& graph) {
  return simulate(graph, schedule_from_sequence(graph, store_all_sequence(graph))).peak_bytes;
}

}  // namespace

TEST_CASE("odd steps: training steps within the budget, or none") {
  std::map<std::string, int> found;
  for (unsigned seed = 0; seed < 24; ++seed) {
    const TrainingGraph graph = odd_step(10 + static_cast<int>(seed), seed);
    const Bytes plain = plain_peak(graph);
    for (const char* planner : kPlanners) {
      for (int percent : {100, 90, 75, 60}) {
        CAPTURE(seed);
        CAPTURE(planner);
        CAPTURE(percent);
        const Bytes budget = plain * percent / 100;
        const PlannerResult result = run_planner(find_planner(planner), graph, budget, PlannerContext(PlannerOptions{}));
        if (percent == 100) {
          REQUIRE(result.plan);
          CHECK(result.plan->overhead == 0);
        }
        if (!result.plan) continue;
        CHECK(simulate(graph, result.plan->schedule).peak_bytes <= budget);
        CHECK(result.min_budget_bytes <= result.plan->peak_bytes);
        ++found[planner];
      }
    }
  }
  for (const char* planner : kPlanners) {
    CAPTURE(planner);
    CHECK(found[planner] > 24);  // not only where nothing has to be recomputed
  }
}

TEST_CASE("graphs in one pass are divided by their marks") {
  TrainingGraph graph = testing::plain_chain(8);
  for (Value& value : graph.values) {
    if (value.kind == ValueKind::kTangent) value.kind = ValueKind::kInput;
  }
  graph.has_boundary = false;
  const Bytes plain = plain_peak(graph);
  for (const char* planner : kPlanners) {
    CAPTURE(planner);
    CHECK(run_planner(find_planner(planner), graph, plain * 8 / 10, PlannerContext(PlannerOptions{})).plan);
  }
}

TEST_CASE("a time limit that is over: an answer at once, without a plan or with a right one") {
  const TrainingGraph graph = testing::transformer(4);
  const Bytes budget = plain_peak(graph) / 2;
  PlannerOptions options;
  options.time_limit_s = 1e-9;
  for (const char* planner : kPlanners) {
    CAPTURE(planner);
    const PlannerResult result = run_planner(find_planner(planner), graph, budget, PlannerContext(options));
    if (result.plan) {
      CHECK(result.plan->peak_bytes <= budget);
    } else {
      CHECK(result.status == PlannerStatus::kTimeLimit);
    }
  }
}

TEST_CASE("progress that asks to stop ends the planner") {
  const TrainingGraph graph = testing::transformer(4);
  PlannerOptions options;
  int calls = 0;
  options.on_progress = [&](const Progress&) { return ++calls < 2; };
  for (const char* planner : kPlanners) {
    CAPTURE(planner);
    calls = 0;
    const PlannerResult result = run_planner(find_planner(planner), graph, plain_peak(graph) / 2, PlannerContext(options));
    CHECK(calls <= 4);
    if (result.plan) CHECK(result.plan->peak_bytes <= plain_peak(graph) / 2);
  }
}

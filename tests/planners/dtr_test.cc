#include "rockmate/planners/dtr.h"

#include <doctest/doctest.h>

#include "rockmate/schedule/simulator.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;

namespace {

PlannerContext context() { return PlannerContext(PlannerOptions{}); }

// Two values of 100 bytes that only the backward reads, one made in 1 us and one in 50 us.
TrainingGraph cheap_and_dear() {
  testing::StepBuilder step;
  const ValueId x = step.input(1);
  const ValueId a = step.op("cheap", {x}, {.bytes = 100, .time_us = 1});
  const ValueId b = step.op("read_cheap", {a}, {.bytes = 10, .time_us = 2, .saves_inputs = true});
  const ValueId c = step.op("dear", {b}, {.bytes = 100, .time_us = 50});
  const ValueId d = step.op("read_dear", {c}, {.bytes = 10, .time_us = 2, .saves_inputs = true});
  const ValueId e = step.op("wide", {d}, {.bytes = 100, .time_us = 2});
  step.op("loss", {e}, {.bytes = 4, .time_us = 1});
  return step.finish();
}

}  // namespace

TEST_CASE("within the budget nothing is evicted, the stream runs as it is") {
  const TrainingGraph graph = cheap_and_dear();
  CHECK(dtr_run(graph, 10'000, context()) == store_all_sequence(graph));
}

TEST_CASE("the cheap value goes, the dear one stays") {
  const TrainingGraph graph = cheap_and_dear();
  // While "wide" runs: 100 + 100 + 10 + 100. One of the two values has to go.
  const std::vector<OpId> sequence = dtr_run(graph, 300, context());
  std::vector<int> computes(graph.ops.size(), 0);
  for (OpId op : sequence) ++computes[op];
  REQUIRE_FALSE(sequence.empty());
  CHECK(computes[0] == 2);
  CHECK(computes[2] == 1);
}

TEST_CASE("no run holds more than its budget") {
  int runs = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    TrainingGraph graph = testing::random_step(20, seed);
    std::mt19937 random(seed);
    for (OpId op = 0; op < num_forward_ops(graph); ++op) {
      graph.ops[op].recomputable = random() % 10 != 0;
      if (random() % 10 == 0) graph.values[graph.ops[op].outputs[0]].retention = Retention::kUntilForwardEnd;
    }
    for (Op& op : graph.ops) op.is_random = random() % 4 == 0;
    const Bytes plain = simulate(graph, schedule_from_sequence(graph, store_all_sequence(graph))).peak_bytes;
    for (Bytes budget = plain; budget > plain / 3; budget -= 5) {
      const std::vector<OpId> sequence = dtr_run(graph, budget, context());
      if (sequence.empty()) continue;
      CAPTURE(seed);
      CAPTURE(budget);
      CHECK(simulate(graph, schedule_from_sequence(graph, sequence)).peak_bytes <= budget);
      ++runs;
    }
  }
  CHECK(runs > 100);
}

TEST_CASE("generator states, which the runtime does not see coming, are within the budget of the planner") {
  TrainingGraph graph = testing::transformer(3);
  graph.rng_state_bytes = 64;
  const Bytes plain = simulate(graph, schedule_from_sequence(graph, store_all_sequence(graph))).peak_bytes;
  const PlannerResult result = run_planner(find_planner("dtr"), graph, plain * 6 / 10, context());
  REQUIRE(result.plan);
  CHECK(result.plan->peak_bytes <= plain * 6 / 10);
}

TEST_CASE("one pass: any op may run again while another one waits") {
  // a and b are read again at the end; both and c don't fit together.
  TrainingGraph graph;
  graph.has_boundary = false;
  const auto value = [&](Bytes bytes, OpId producer) {
    graph.values.push_back({std::string("v").append(std::to_string(graph.num_values())), bytes, ValueKind::kActivation,
                            Retention::kUntilLastUse, producer});
  };
  const auto op = [&](std::vector<ValueId> inputs, Bytes bytes, Micros time_us) {
    Op op;
    op.name = std::string("op").append(std::to_string(graph.num_ops()));
    op.inputs = std::move(inputs);
    op.outputs = {graph.num_values()};
    op.time_us = time_us;
    value(bytes, graph.num_ops());
    graph.ops.push_back(op);
  };
  op({}, 10, 1);         // a
  op({0}, 10, 9);        // b
  op({1}, 10, 1);        // c
  op({0, 1, 2}, 10, 1);  // reads all three
  op({2}, 20, 1);        // d: c and d, one of a and b
  op({0, 1, 4}, 1, 1);
  graph.values.back().retention = Retention::kUntilStepEnd;
  // The last op alone needs 41.
  const std::vector<OpId> sequence = dtr_run(graph, 41, context());
  REQUIRE_FALSE(sequence.empty());
  // For d one of a and b goes: a, which is cheaper and older. It comes back for the last op.
  CHECK(sequence == std::vector<OpId>{0, 1, 2, 3, 4, 0, 5});
  CHECK(simulate(graph, schedule_from_sequence(graph, sequence)).peak_bytes <= 41);
}

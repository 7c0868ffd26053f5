#include "rockmate/planners/checkpoints.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "rockmate/schedule/simulator.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;

namespace {

using testing::StepBuilder;

// Six ops of 100 bytes whose backward reads their input, as in the header; op 6 + i is the backward of op 5 - i.
TrainingGraph chain6() {
  StepBuilder step;
  ValueId x = step.input(100);
  for (int i = 0; i < 6; ++i) x = step.op("f", {x}, {.bytes = 100, .time_us = 1, .saves_inputs = true});
  return step.finish();
}

std::vector<OpId> backward_of(const TrainingGraph& graph, const std::vector<OpId>& sequence) {
  return {sequence.begin() + num_forward_ops(graph), sequence.end()};
}

}  // namespace

TEST_CASE("one level: segments come back one by one, the last is still there") {
  const TrainingGraph graph = chain6();
  const Checkpoints checkpoints(graph, {0, 0, 1, 1, 2, 2});
  CHECK(checkpoints.segment_bytes() == std::vector<Bytes>{200, 200, 200});
  // The backward of f4 (op 7) reads the output of f3, a border; that of f3 (op 8) the output of f2.
  CHECK(backward_of(graph, checkpoints.flat_sequence()) == std::vector<OpId>{6, 7, 2, 8, 9, 0, 10, 11});
}

TEST_CASE("two levels: what is kept between the parts of a part is made again") {
  const TrainingGraph graph = chain6();
  const Checkpoints checkpoints(graph, {0, 0, 1, 1, 2, 2});
  const auto halves = [](int begin, int end) {
    return end - begin < 2 ? std::vector<int>{} : std::vector<int>{end - begin == 3 ? 2 : begin + 1};
  };
  // At the top only the output of f3 is kept. f0 f1 again, keeping the output of f1; f2 again for the backward of f3.
  CHECK(backward_of(graph, checkpoints.sequence(halves)) == std::vector<OpId>{6, 7, 0, 1, 2, 8, 9, 0, 10, 11});
}

TEST_CASE("no division: nothing is recomputed") {
  const TrainingGraph graph = chain6();
  const std::vector<OpId> sequence =
      Checkpoints(graph, {0, 0, 1, 1, 2, 2}).sequence([](int, int) { return std::vector<int>{}; });
  CHECK(sequence.size() == graph.ops.size());
}

TEST_CASE("what an op with side effects wrote is kept, what leaves the forward pass may be made again") {
  TrainingGraph graph = chain6();
  graph.ops[2].recomputable = false;
  graph.values[graph.ops[0].outputs[0]].retention = Retention::kUntilForwardEnd;
  const std::vector<OpId> sequence = Checkpoints(graph, {0, 0, 1, 1, 2, 2}).flat_sequence();
  CHECK(backward_of(graph, sequence) == std::vector<OpId>{6, 7, 8, 9, 0, 10, 11});
  CHECK_NOTHROW(simulate(graph, schedule_from_sequence(graph, sequence)));
}

TEST_CASE("any division of any step is a training step") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    TrainingGraph graph = testing::random_step(14, seed);
    std::mt19937 random(seed);
    for (OpId op = 0; op < num_forward_ops(graph); ++op) {
      graph.ops[op].recomputable = random() % 8 != 0;
      if (random() % 8 == 0) graph.values[graph.ops[op].outputs[0]].retention = Retention::kUntilForwardEnd;
      if (random() % 12 == 0) graph.values[graph.ops[op].outputs[0]].retention = Retention::kUntilStepEnd;
    }
    for (Op& op : graph.ops) op.is_random = random() % 4 == 0;
    graph.rng_state_bytes = 2;
    std::vector<int> segment_of{0};
    for (OpId op = 1; op < num_forward_ops(graph); ++op) {
      segment_of.push_back(segment_of.back() + static_cast<int>(random() % 2));
    }
    const Checkpoints checkpoints(graph, segment_of);
    CAPTURE(seed);
    CHECK_NOTHROW(simulate(graph, schedule_from_sequence(graph, checkpoints.flat_sequence())));
    const auto thirds = [](int begin, int end) {
      std::vector<int> borders;
      for (int i = 1; i < 3; ++i) {
        const int border = begin + (end - begin) * i / 3;
        if (border > begin && (borders.empty() || border > borders.back())) borders.push_back(border);
      }
      return borders;
    };
    CHECK_NOTHROW(simulate(graph, schedule_from_sequence(graph, checkpoints.sequence(thirds))));
  }
}

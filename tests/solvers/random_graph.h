// Graphs of no particular kind, for tests of solvers against a plain count.
#pragma once

#include <algorithm>
#include <random>
#include <string>

#include "rockmate/graph/graph.h"

namespace rockmate::testing {

// Ops that read from a dozen ops before, some of them random, some values kept longer; in one pass or in two.
inline TrainingGraph random_graph(int ops, unsigned seed, bool boundary) {
  std::mt19937 random(seed);
  TrainingGraph graph;
  graph.has_boundary = boundary;
  graph.rng_state_bytes = 3;
  for (int i = 0; i < ops; ++i) {
    Op op;
    op.name = "op" + std::to_string(i);
    op.pass = i < ops / 2 ? Pass::kForward : Pass::kBackward;
    op.time_us = 1 + static_cast<double>(random() % 10);
    op.workspace_bytes = random() % 4 == 0 ? random() % 20 : 0;
    op.is_random = random() % 8 == 0;
    for (int k = 0; k < 3 && i > 0; ++k) {
      const ValueId input = static_cast<ValueId>(i - 1 - random() % std::min(i, 12));
      if (std::find(op.inputs.begin(), op.inputs.end(), input) == op.inputs.end()) op.inputs.push_back(input);
    }
    op.outputs = {i};
    Value value{.name = "v" + std::to_string(i), .bytes = static_cast<Bytes>(random() % 100), .producer = i};
    if (random() % 16 == 0 || i + 1 == ops) value.retention = Retention::kUntilStepEnd;
    if (boundary && i < ops / 2 && random() % 16 == 0) value.retention = Retention::kUntilForwardEnd;
    graph.values.push_back(value);
    graph.ops.push_back(op);
  }
  check_graph(graph);
  return graph;
}

}  // namespace rockmate::testing

// The worked example of graph.h: y = relu(x w), loss = sum(y). Sizes in bytes are small and distinct powers of ten, so that a
// sum in a test reads like a list: h 1000, y 100, dy 20, dh 30, loss 4, dloss 5; x, w and dw are never charged.
#pragma once

#include "rockmate/graph/graph.h"

namespace example {

enum : rockmate::ValueId { x, w, h, y, loss, dloss, dy, dh, dw };

inline rockmate::TrainingGraph graph() {
  using namespace rockmate;
  using K = ValueKind;
  TrainingGraph graph;
  graph.name = "example";
  graph.device = "cpu";
  graph.values = {{"x", 7, K::kInput},
                  {"w", 7, K::kParameter},
                  {"h", 1000, K::kActivation, Retention::kUntilLastUse, 0},
                  {"y", 100, K::kActivation, Retention::kUntilLastUse, 1},
                  {"loss", 4, K::kActivation, Retention::kUntilStepEnd, 2},
                  {"dloss", 5, K::kTangent},
                  {"dy", 20, K::kGradient, Retention::kUntilLastUse, 3},
                  {"dh", 30, K::kGradient, Retention::kUntilLastUse, 4},
                  {"dw", 7, K::kParameterGradient, Retention::kUntilStepEnd, 5}};
  const auto add = [&](const char* name, Pass pass, std::vector<ValueId> inputs, std::vector<ValueId> outputs, Micros time_us) {
    Op op;
    op.name = name;
    op.target = std::string("aten.") + name;
    op.pass = pass;
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    op.time_us = time_us;
    graph.ops.push_back(op);
  };
  add("mm", Pass::kForward, {x, w}, {h}, 8);
  add("relu", Pass::kForward, {h}, {y}, 1);
  add("sum", Pass::kForward, {y}, {loss}, 1);
  add("expand_copy", Pass::kBackward, {dloss}, {dy}, 1);
  add("relu_backward", Pass::kBackward, {dy, y}, {dh}, 1);
  add("mm_backward", Pass::kBackward, {x, dh}, {dw}, 8);
  return graph;
}

}  // namespace example

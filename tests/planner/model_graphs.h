// Graphs shaped like real models, with sizes in proportion to real ones, for tests of the partition and of the planner.
#pragma once

#include <algorithm>
#include <random>

#include "tests/planner/step_builder.h"

namespace rockmate::testing {

// Pre-norm transformer: attention written out, dropout, an MLP; every layer reads one mask that is made once.
// T tokens of width D in H heads; sizes in units of T.
inline TrainingGraph transformer(int layers, Bytes D = 64, Bytes T = 32, Bytes H = 4) {
  StepBuilder step;
  const Bytes hidden = T * D, scores = H * T * T;
  const ValueId tokens = step.input(T);
  const ValueId mask = step.op("make_mask", {tokens}, {.bytes = T * T, .time_us = 1, .differentiable = false});
  ValueId x = step.op("embedding", {tokens}, {.bytes = hidden, .time_us = 2});
  const auto norm = [&](ValueId v) {
    return step.op("layer_norm", {v}, {.bytes = hidden, .time_us = 3, .saves_inputs = true, .extra = {T, T}});
  };
  const auto dropout = [&](ValueId v, Bytes bytes) {
    return step.op("dropout", {v}, {.bytes = bytes, .time_us = 3, .is_random = true, .extra = {bytes / 4}});
  };
  for (int layer = 0; layer < layers; ++layer) {
    const ValueId qkv = step.op("linear_qkv", {norm(x)}, {.bytes = 3 * hidden, .time_us = 60, .saves_inputs = true});
    const ValueId q = step.op("clone", {qkv}, {.bytes = hidden, .time_us = 2});
    const ValueId k = step.op("clone", {qkv}, {.bytes = hidden, .time_us = 2});
    const ValueId v = step.op("clone", {qkv}, {.bytes = hidden, .time_us = 2});
    ValueId s = step.op("bmm", {q, k}, {.bytes = scores, .time_us = 20, .saves_inputs = true});
    s = step.op("scale", {s}, {.bytes = scores, .time_us = 4});
    s = step.op("add_mask", {s, mask}, {.bytes = scores, .time_us = 4});
    s = step.op("softmax", {s}, {.bytes = scores, .time_us = 8, .saves_result = true});
    s = dropout(s, scores);
    ValueId y = step.op("bmm", {s, v}, {.bytes = hidden, .time_us = 20, .saves_inputs = true});
    y = step.op("linear", {y}, {.bytes = hidden, .time_us = 20, .saves_inputs = true});
    x = step.op("residual", {x, dropout(y, hidden)}, {.bytes = hidden, .time_us = 2});
    ValueId h = step.op("linear_up", {norm(x)}, {.bytes = 4 * hidden, .time_us = 80, .saves_inputs = true});
    h = step.op("gelu", {h}, {.bytes = 4 * hidden, .time_us = 8, .saves_inputs = true});
    h = step.op("linear_down", {h}, {.bytes = hidden, .time_us = 80, .saves_inputs = true});
    x = step.op("residual", {x, dropout(h, hidden)}, {.bytes = hidden, .time_us = 2});
  }
  x = norm(x);
  x = step.op("lm_head", {x}, {.bytes = 10 * hidden, .time_us = 200, .saves_inputs = true});
  x = step.op("log_softmax", {x}, {.bytes = 10 * hidden, .time_us = 20, .saves_result = true});
  step.op("nll_loss", {x}, {.bytes = 4, .time_us = 5});
  return step.finish();
}

// Encoder and decoder of convolutions with a long skip at each of `depth` levels: the skips cross everything inside.
inline TrainingGraph unet(int depth) {
  StepBuilder step;
  const ValueId image = step.input(4096);
  Bytes bytes = 4096;
  const auto conv = [&](std::vector<ValueId> from, Bytes size) {
    ValueId x = step.op("conv", from, {.bytes = size, .time_us = 40, .saves_inputs = true, .workspace_bytes = size / 2});
    x = step.op("group_norm", {x}, {.bytes = size, .time_us = 4, .saves_inputs = true, .extra = {8, 8}});
    return step.op("silu", {x}, {.bytes = size, .time_us = 3, .saves_inputs = true});
  };
  ValueId x = conv({image}, bytes);
  std::vector<ValueId> skips;
  for (int level = 0; level < depth; ++level) {
    x = conv({conv({x}, bytes)}, bytes);
    skips.push_back(x);
    bytes /= 2;
    x = conv({x}, bytes);
  }
  for (int level = depth; level-- > 0;) {
    bytes *= 2;
    x = step.op("upsample", {x}, {.bytes = bytes, .time_us = 3});
    x = step.op("cat", {x, skips[level]}, {.bytes = 2 * bytes, .time_us = 3});
    x = conv({conv({x}, bytes)}, bytes);
  }
  step.op("mse_loss", {x}, {.bytes = 4, .time_us = 3, .saves_inputs = true});
  return step.finish();
}

// Layers of linear and relu, nothing else: every op is a cut.
inline TrainingGraph plain_chain(int layers, Bytes bytes = 100) {
  StepBuilder step;
  ValueId x = step.input(bytes);
  for (int i = 0; i < layers; ++i) {
    x = step.op("linear", {x}, {.bytes = bytes, .time_us = 10, .saves_inputs = true});
    x = step.op("relu", {x}, {.bytes = bytes, .time_us = 1, .saves_result = true});
  }
  step.op("sum", {x}, {.bytes = 4, .time_us = 1});
  return step.finish();
}

// A random step of `ops` forward ops: each reads one or two of the last three results; sizes 1 to 9, times 1 to 5.
inline TrainingGraph random_step(int ops, unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) { return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1)); };
  StepBuilder step;
  std::vector<ValueId> results{step.input(1)};
  for (int i = 0; i < ops; ++i) {
    std::vector<ValueId> inputs{results.back()};
    if (results.size() > 2 && pick(0, 2) == 0) {
      const ValueId other =
          results[results.size() - static_cast<std::size_t>(pick(2, 3 <= static_cast<int>(results.size()) ? 3 : 2))];
      inputs.push_back(other);
    }
    OpSpec spec{.bytes = pick(1, 9), .time_us = static_cast<Micros>(pick(1, 5))};
    spec.saves_inputs = pick(0, 1) == 1;
    spec.saves_result = pick(0, 2) == 0;
    spec.workspace_bytes = pick(0, 3) == 0 ? pick(1, 5) : 0;
    if (pick(0, 3) == 0) spec.extra = {pick(1, 4)};
    results.push_back(step.op(std::string("f").append(std::to_string(pick(0, 99))), inputs, spec));
  }
  return step.finish();
}

// The same ops in one pass, so that any may run again at any time.
inline TrainingGraph in_one_pass(TrainingGraph graph) {
  graph.has_boundary = false;
  for (Value& value : graph.values) {
    if (value.kind == ValueKind::kTangent) value.kind = ValueKind::kInput;
    if (value.retention == Retention::kUntilForwardEnd) value.retention = Retention::kUntilLastUse;
  }
  return graph;
}

}  // namespace rockmate::testing

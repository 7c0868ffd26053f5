// Makes training graphs for tests: forward ops are listed, the backward pass is derived as autograd would. Each op's backward
// reads the gradient of its result and what it saved, and writes one gradient for each activation that the op read; the
// gradients of a value with several readers are added up one by one.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate::testing {

struct OpSpec {
  Bytes bytes = 0;  // of the result
  Micros time_us = 1;
  bool saves_inputs = false;  // the backward reads the activations that the op read
  bool saves_result = false;  // the backward reads the result
  Bytes workspace_bytes = 0;
  bool is_random = false;
  bool differentiable = true;  // false: no gradient flows through the result
  std::vector<Bytes> extra{};  // further results that only the backward reads (a mask, statistics)
};

class StepBuilder {
 public:
  ValueId input(Bytes bytes) { return add_value(ValueKind::kInput, bytes, kNone); }

  ValueId op(const std::string& name, const std::vector<ValueId>& inputs, const OpSpec& spec) {
    const OpId id = graph_.num_ops();
    Op op = make_op(name, Pass::kForward, inputs, spec.time_us);
    op.workspace_bytes = spec.workspace_bytes;
    op.is_random = spec.is_random;
    const ValueId result = add_value(ValueKind::kActivation, spec.bytes, id);
    op.outputs.push_back(result);
    if (!spec.differentiable) constant_.insert(result);
    Step step{inputs, result, {}, spec.time_us};
    for (Bytes bytes : spec.extra) {
      step.saved.push_back(add_value(ValueKind::kActivation, bytes, id));
      op.outputs.push_back(step.saved.back());
    }
    if (spec.saves_inputs) step.saved.insert(step.saved.end(), inputs.begin(), inputs.end());
    if (spec.saves_result) step.saved.push_back(result);
    graph_.ops.push_back(std::move(op));
    steps_.push_back(std::move(step));
    return result;
  }

  // The last op's result is the loss, or the logits.
  TrainingGraph finish() {
    const ValueId loss = steps_.back().result;
    graph_.values[loss].retention = Retention::kUntilStepEnd;
    std::map<ValueId, ValueId> gradient;
    gradient[loss] = add_value(ValueKind::kTangent, graph_.values[loss].bytes, kNone);
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      if (gradient.count(step->result) == 0) continue;
      std::vector<ValueId> reads{gradient[step->result]};
      for (ValueId v : step->saved) {
        if (std::find(reads.begin(), reads.end(), v) == reads.end()) reads.push_back(v);
      }
      Op backward = make_op("backward", Pass::kBackward, reads, 2 * step->time_us);
      const OpId id = graph_.num_ops();
      std::vector<std::pair<ValueId, ValueId>> partial;  // value, its gradient from this op
      for (ValueId v : step->inputs) {
        if (graph_.values[v].kind != ValueKind::kActivation || constant_.count(v) > 0) continue;
        partial.emplace_back(v, add_value(ValueKind::kGradient, graph_.values[v].bytes, id));
        backward.outputs.push_back(partial.back().second);
      }
      const ValueId weight = add_value(ValueKind::kParameterGradient, 1, id);
      graph_.values[weight].retention = Retention::kUntilStepEnd;
      backward.outputs.push_back(weight);
      graph_.ops.push_back(std::move(backward));
      for (const auto& [v, from_here] : partial) accumulate(gradient, v, from_here);
    }
    return graph_;
  }

 private:
  struct Step {
    std::vector<ValueId> inputs;
    ValueId result;
    std::vector<ValueId> saved;
    Micros time_us;
  };

  ValueId add_value(ValueKind kind, Bytes bytes, OpId producer) {
    Value value;
    value.name = std::string("v").append(std::to_string(graph_.num_values()));
    value.bytes = bytes;
    value.kind = kind;
    value.producer = producer;
    graph_.values.push_back(value);
    return graph_.num_values() - 1;
  }

  Op make_op(const std::string& target, Pass pass, const std::vector<ValueId>& inputs, Micros time_us) {
    Op op;
    op.name = std::string(target).append("_").append(std::to_string(graph_.num_ops()));
    op.target = target;
    op.signature = target;
    op.pass = pass;
    op.inputs = inputs;
    op.time_us = time_us;
    return op;
  }

  void accumulate(std::map<ValueId, ValueId>& gradient, ValueId v, ValueId from_here) {
    const auto [known, is_first] = gradient.try_emplace(v, from_here);
    if (is_first) return;
    const OpId id = graph_.num_ops();
    Op add = make_op("add", Pass::kBackward, {known->second, from_here}, 1);
    known->second = add_value(ValueKind::kGradient, graph_.values[v].bytes, id);
    add.outputs.push_back(known->second);
    graph_.ops.push_back(std::move(add));
  }

  TrainingGraph graph_;
  std::vector<Step> steps_;
  std::set<ValueId> constant_;
};

}  // namespace rockmate::testing

// What a search asks of a graph at every trial, side by side in flat arrays: an op of TrainingGraph, with its names, fills four
// cache lines, and a search that looks at some hundred of them for each trial waits for memory most of its time.
#pragma once

#include <span>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

class FlatGraph {
 public:
  explicit FlatGraph(const TrainingGraph& graph) : input_begin_{0}, output_begin_{0} {
    for (const Op& op : graph.ops) {
      inputs_.insert(inputs_.end(), op.inputs.begin(), op.inputs.end());
      outputs_.insert(outputs_.end(), op.outputs.begin(), op.outputs.end());
      input_begin_.push_back(inputs_.size());
      output_begin_.push_back(outputs_.size());
    }
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      ops_.push_back({graph.ops[op].time_us, graph.ops[op].is_random, rockmate::may_repeat(graph, op)});
    }
    for (const Value& value : graph.values) {
      const bool is_remade = value.producer != kNone && ops_[value.producer].may_repeat;
      values_.push_back({charged_bytes(value), value.producer, is_remade, value.retention == Retention::kUntilStepEnd});
    }
  }

  struct FlatOp {
    Micros time_us;
    bool is_random, may_repeat;
  };
  struct FlatValue {
    Bytes bytes;  // charged
    OpId producer;
    bool can_be_remade;  // its producer may run again
    bool is_kept_to_end;
  };

  const FlatOp& op(OpId op) const { return ops_[op]; }
  const FlatValue& value(ValueId value) const { return values_[value]; }
  std::span<const ValueId> inputs(OpId op) const {
    return {inputs_.data() + input_begin_[op], inputs_.data() + input_begin_[op + 1]};
  }
  std::span<const ValueId> outputs(OpId op) const {
    return {outputs_.data() + output_begin_[op], outputs_.data() + output_begin_[op + 1]};
  }

 private:
  std::vector<std::size_t> input_begin_, output_begin_;  // of each op; one more at the end
  std::vector<ValueId> inputs_, outputs_;
  std::vector<FlatOp> ops_;
  std::vector<FlatValue> values_;
};

}  // namespace rockmate

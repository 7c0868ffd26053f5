#include "rockmate/partition/block_problem.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

namespace rockmate {
namespace {

class ProblemBuilder {
 public:
  ProblemBuilder(const TrainingGraph& graph, const std::vector<std::vector<OpId>>& readers, const Chain& chain, int block)
      : graph_(graph), readers_(readers), chain_(chain), index_(block), block_(chain.blocks[block]) {}

  Bytes passing_bytes() const { return chain_.gradient_bytes[index_ + 1] - read_from_outside_; }

  BlockProblem build() {
    problem_.graph.rng_state_bytes = graph_.rng_state_bytes;
    for (OpId op = block_.begin; op < block_.end; ++op) add_op(op);
    for (OpId op : block_.backward) add_op(op);
    if (block_.output != kNone) {
      const auto found = local_.find(block_.output);
      if (found != local_.end()) problem_.output = found->second;
    }
    return std::move(problem_);
  }

 private:
  bool is_inside(OpId op) const { return op != kNone && chain_.block_of[op] == index_; }

  void add_op(OpId id) {
    const Op& op = graph_.ops[id];
    const OpId local_id = problem_.graph.num_ops();
    Op local;
    local.pass = op.pass;
    local.time_us = op.time_us;
    local.workspace_bytes = op.workspace_bytes;
    local.is_random = op.is_random;
    for (ValueId v : op.inputs) local.inputs.push_back(local_value(v));
    Bytes pinned_bytes = 0;
    for (ValueId v : op.outputs) {
      if (chain_.pinned[v]) {
        pinned_bytes += charged_bytes(graph_.values[v]);
        continue;
      }
      const ValueId written = local_value(v);
      problem_.graph.values[written].producer = local_id;
      local.outputs.push_back(written);
    }
    local.recomputable = op.recomputable && !local.outputs.empty();
    if (!local.outputs.empty()) local.workspace_bytes += pinned_bytes;  // made again and dropped when the op is recomputed
    problem_.graph.ops.push_back(std::move(local));
    problem_.op_of.push_back(id);
  }

  ValueId local_value(ValueId v) {
    const auto [found, is_new] = local_.try_emplace(v, problem_.graph.num_values());
    if (is_new) problem_.graph.values.push_back(describe(v));
    return found->second;
  }

  Value describe(ValueId v) {
    const Value& value = graph_.values[v];
    Value local;
    local.bytes = charged_bytes(value);
    local.kind = value.kind;
    const bool is_gradient =
        value.kind == ValueKind::kTangent || (value.producer != kNone && graph_.ops[value.producer].pass == Pass::kBackward);
    if (is_resident(value.kind) || chain_.pinned[v] || (!is_gradient && !is_inside(value.producer))) {
      local.kind = ValueKind::kInput;
      local.bytes = 0;
    } else if (!is_gradient) {
      if (v == block_.output) local.retention = Retention::kUntilForwardEnd;
    } else {
      if (!is_inside(value.producer)) {
        local.kind = ValueKind::kTangent;
        read_from_outside_ += local.bytes;
      }
      if (outlives_block(v)) local.retention = Retention::kUntilStepEnd;
    }
    return local;
  }

  bool outlives_block(ValueId v) const {
    if (graph_.values[v].retention == Retention::kUntilStepEnd) return true;
    return std::any_of(readers_[v].begin(), readers_[v].end(), [&](OpId reader) { return chain_.block_of[reader] < index_; });
  }

  const TrainingGraph& graph_;
  const std::vector<std::vector<OpId>>& readers_;
  const Chain& chain_;
  int index_;
  const Block& block_;
  BlockProblem problem_;
  std::unordered_map<ValueId, ValueId> local_;
  Bytes read_from_outside_ = 0;
};

}  // namespace

BlockProblem block_problem(const TrainingGraph& graph, const Chain& chain, int block) {
  return ProblemBuilder(graph, readers_of(graph), chain, block).build();
}

std::vector<std::int64_t> canonical_form(const BlockProblem& problem) {
  std::vector<std::int64_t> form{problem.output, problem.graph.rng_state_bytes, problem.graph.num_values(),
                                 problem.graph.num_ops()};
  for (const Value& value : problem.graph.values) {
    form.insert(form.end(), {value.bytes, static_cast<std::int64_t>(value.kind), static_cast<std::int64_t>(value.retention)});
  }
  for (const Op& op : problem.graph.ops) {
    form.insert(form.end(), {static_cast<std::int64_t>(op.pass), std::bit_cast<std::int64_t>(op.time_us), op.workspace_bytes,
                             op.is_random, op.recomputable, static_cast<std::int64_t>(op.inputs.size())});
    form.insert(form.end(), op.inputs.begin(), op.inputs.end());
    form.push_back(static_cast<std::int64_t>(op.outputs.size()));
    form.insert(form.end(), op.outputs.begin(), op.outputs.end());
  }
  return form;
}

BlockClasses classify_blocks(const TrainingGraph& graph, const Chain& chain) {
  const auto readers = readers_of(graph);
  BlockClasses classes;
  std::map<std::vector<std::int64_t>, int> known;
  for (int k = 0; k < static_cast<int>(chain.blocks.size()); ++k) {
    ProblemBuilder builder(graph, readers, chain, k);
    BlockProblem problem = builder.build();
    classes.passing_bytes.push_back(builder.passing_bytes());
    classes.op_of.push_back(problem.op_of);
    const auto [found, is_new] = known.try_emplace(canonical_form(problem), static_cast<int>(classes.problems.size()));
    classes.class_of.push_back(found->second);
    if (!is_new) continue;
    classes.forms.push_back(found->first);
    classes.problems.push_back(std::move(problem));
  }
  return classes;
}

}  // namespace rockmate

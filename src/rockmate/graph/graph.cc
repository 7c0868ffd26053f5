#include "rockmate/graph/graph.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <unordered_set>

namespace rockmate {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::invalid_argument("[graph] " + what + ": the graph was edited or badly made, capture or generate it again");
}

std::string quoted(const std::string& kind, std::size_t id, const std::string& name) {
  return kind + " " + std::to_string(id) + " '" + name + "'";
}

void check_value(const TrainingGraph& graph, std::size_t id) {
  const Value& value = graph.values[id];
  const std::string self = quoted("value", id, value.name);
  if (value.bytes < 0) fail(self + " has a negative size of " + std::to_string(value.bytes) + " bytes");
  const bool written = !is_resident(value.kind) && value.kind != ValueKind::kTangent;
  if (!written && value.producer != kNone) fail(self + " is there before the step (or a tangent), yet an op produces it");
  if (written && (value.producer < 0 || value.producer >= graph.num_ops())) fail(self + " has no producer in the graph");
}

void check_costs(const Op& op, const std::string& self) {
  if (!std::isfinite(op.time_us) || op.time_us < 0) fail(self + " has a time that is negative or not finite");
  if (!std::isfinite(op.flops) || op.flops < 0) fail(self + " has a number of flops that is negative or not finite");
  if (op.workspace_bytes < 0) fail(self + " has a negative workspace");
  if (op.moved_bytes < 0) fail(self + " moves a negative number of bytes");
}

void check_inputs(const TrainingGraph& graph, std::size_t id, const std::string& self) {
  const Op& op = graph.ops[id];
  std::unordered_set<ValueId> seen;
  for (ValueId input : op.inputs) {
    if (input < 0 || input >= graph.num_values()) fail(self + " reads value " + std::to_string(input) + ", which is not there");
    const Value& value = graph.values[input];
    const std::string other = quoted("value", input, value.name);
    if (!seen.insert(input).second) fail(self + " lists its input " + other + " twice");
    if (value.kind == ValueKind::kTangent && op.pass == Pass::kForward)
      fail(self + " runs forward and reads the tangent " + other);
    if (value.producer != kNone && value.producer >= static_cast<OpId>(id))
      fail(self + " reads " + other + " before it is written");
  }
}

// Counts in `listed` how often each value is listed as an output.
void check_outputs(const TrainingGraph& graph, std::size_t id, const std::string& self, std::vector<char>& listed) {
  for (ValueId output : graph.ops[id].outputs) {
    if (output < 0 || output >= graph.num_values()) {
      fail(self + " writes value " + std::to_string(output) + ", which is not there");
    }
    const std::string other = quoted("value", output, graph.values[output].name);
    if (graph.values[output].producer != static_cast<OpId>(id))
      fail(self + " writes " + other + ", which names another producer");
    if (listed[output]++) fail(self + " lists its output " + other + " twice");
  }
}

}  // namespace

OpId num_forward_ops(const TrainingGraph& graph) {
  if (!graph.has_boundary) return 0;
  OpId count = 0;
  while (count < graph.num_ops() && graph.ops[count].pass == Pass::kForward) ++count;
  return count;
}

std::optional<TrainingGraph> with_boundary(const TrainingGraph& graph) {
  const auto is_forward = [](const Op& op) { return op.pass == Pass::kForward; };
  const bool divided = std::is_partitioned(graph.ops.begin(), graph.ops.end(), is_forward) && !graph.ops.empty() &&
                       is_forward(graph.ops.front()) && !is_forward(graph.ops.back());
  if (graph.has_boundary || !divided) return std::nullopt;
  TrainingGraph step = graph;
  step.has_boundary = true;
  return step;
}

std::vector<std::vector<OpId>> readers_of(const TrainingGraph& graph) {
  std::vector<std::vector<OpId>> readers(graph.values.size());
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (ValueId input : graph.ops[op].inputs) readers[input].push_back(op);
  }
  return readers;
}

void check_graph(const TrainingGraph& graph) {
  if (graph.rng_state_bytes < 0) fail("the size of a generator state is negative");
  for (std::size_t id = 0; id < graph.values.size(); ++id) check_value(graph, id);

  std::unordered_set<std::string> names;
  std::vector<char> listed(graph.values.size(), 0);
  bool backward = false;
  for (std::size_t id = 0; id < graph.ops.size(); ++id) {
    const Op& op = graph.ops[id];
    const std::string self = quoted("op", id, op.name);
    if (!names.insert(op.name).second) fail(self + " has the name of another op");
    if (graph.has_boundary && op.pass == Pass::kForward && backward) fail(self + " runs forward but comes after a backward op");
    backward = op.pass == Pass::kBackward;
    check_costs(op, self);
    check_inputs(graph, id, self);
    check_outputs(graph, id, self, listed);
  }
  for (std::size_t id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    const std::string self = quoted("value", id, value.name);
    if (value.producer != kNone && !listed[id]) fail(self + " is not listed by its producer");
    if (!graph.has_boundary && (value.retention == Retention::kUntilForwardEnd || value.kind == ValueKind::kTangent)) {
      fail(self + " belongs to a boundary, but the graph has none");
    }
  }
}

}  // namespace rockmate

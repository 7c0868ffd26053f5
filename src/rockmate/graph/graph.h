// The nouns of the planner: a training step as ops and values. No algorithm lives here.
//
// A worked example, used in the tests and the other headers. The step of y = relu(x w), loss = sum(y):
//
//   forward   op 0  mm    reads x, w      writes h      (8 MiB)
//             op 1  relu  reads h         writes y      (8 MiB)
//             op 2  sum   reads y         writes loss   (4 B)
//   backward  op 3  expand_copy reads dloss   writes dy (8 MiB)
//             op 4  relu_backward reads dy, y writes dh (8 MiB)
//             op 5  mm    reads x, dh     writes dw     (parameter gradient)
//
// x is an input, w a parameter, dloss the tangent; h and y are activations, loss is an output, dy and dh gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rockmate {

using OpId = std::int32_t;     // index into TrainingGraph::ops
using ValueId = std::int32_t;  // index into TrainingGraph::values
using Bytes = std::int64_t;
using Micros = double;  // time in microseconds

inline constexpr std::int32_t kNone = -1;

enum class ValueKind : std::uint8_t {
  // Alive before the step begins and after it ends. Never computed, never freed, never charged to the budget.
  kParameter,
  kBuffer,
  kInput,
  kConstant,
  // Gradient of a forward output. Appears when the backward pass begins; charged from then until it is freed.
  kTangent,
  // Written by an op, charged while alive.
  kActivation,
  kGradient,
  // Written by an op and handed to the optimizer. Not charged: the budget does not count parameter gradients.
  kParameterGradient,
};

// How long a value must stay alive after its last use inside the step.
enum class Retention : std::uint8_t {
  kUntilLastUse,     // may be freed as soon as no remaining op reads it
  kUntilForwardEnd,  // leaves the forward pass and is then dropped: the new content of a mutated buffer
  kUntilStepEnd,     // leaves the step: a forward output that the user holds, a parameter or input gradient
};

// A value is one storage. Views share the value that they look at and cost nothing to make again.
struct Value {
  std::string name;
  Bytes bytes = 0;
  ValueKind kind = ValueKind::kActivation;
  Retention retention = Retention::kUntilLastUse;
  OpId producer = kNone;  // kNone for values that no op writes (parameters, buffers, inputs, constants, tangents)
};

enum class Pass : std::uint8_t { kForward, kBackward };

struct Op {
  std::string name;       // unique in the graph
  std::string target;     // what is called, e.g. "aten.addmm.default"
  std::string signature;  // equal for ops that cost the same: target, shapes, strides, dtypes, constants
  std::string module;     // path of the user's module it came from, e.g. "transformer.h.3.mlp"; may be empty
  Pass pass = Pass::kForward;
  std::vector<ValueId> inputs;   // distinct values read, in argument order
  std::vector<ValueId> outputs;  // distinct values written, one for each output that has a storage of its own
  Micros time_us = 0;
  Bytes workspace_bytes = 0;  // the most bytes held inside the op beyond its inputs and all its outputs
  double flops = 0;           // for the roofline; 0 where only memory traffic matters
  Bytes moved_bytes = 0;      // bytes read and written, for the roofline
  std::string dtype;          // compute type for the roofline, e.g. "float32"
  bool is_random = false;     // draws from the generator: keeps its place in the order, is replayed when recomputed
  bool recomputable = true;   // false for ops with side effects: computed exactly once
};

// ops is a topological order, all forward ops before all backward ops; a plan without recomputation runs it as it stands.
//
// Graphs from outside (graph/node_link.h) have no boundary: nobody executes them, so nothing divides a forward pass from a
// backward pass. Any op may run at any time and again, and what `pass` says is only a mark.
struct TrainingGraph {
  std::string name;
  std::string device;  // e.g. "cpu"
  std::vector<Op> ops;
  std::vector<Value> values;
  Bytes rng_state_bytes = 0;  // device bytes that one saved generator state costs; charged for each random op recomputed
  bool has_boundary = true;   // false: one pass, see above

  OpId num_ops() const { return static_cast<OpId>(ops.size()); }
  ValueId num_values() const { return static_cast<ValueId>(values.size()); }
};

// Alive all along: neither computed, freed nor charged.
inline bool is_resident(ValueKind kind) {
  return kind == ValueKind::kParameter || kind == ValueKind::kBuffer || kind == ValueKind::kInput ||
         kind == ValueKind::kConstant;
}

// Bytes that the value takes from the activation budget while it is alive.
inline Bytes charged_bytes(const Value& value) {
  return is_resident(value.kind) || value.kind == ValueKind::kParameterGradient ? 0 : value.bytes;
}

// Number of ops of the forward pass; they are ops[0 .. num_forward_ops). 0 for a graph without boundary.
OpId num_forward_ops(const TrainingGraph& graph);

// May the op run more than once? Forward ops without side effects; without a boundary every op without side effects.
inline bool may_repeat(const TrainingGraph& graph, OpId op) {
  return graph.ops[op].recomputable && (graph.ops[op].pass == Pass::kForward || !graph.has_boundary);
}

// A graph without boundary taken as a training step: a boundary between the ops marked forward and those marked backward.
// Sequences of the result are sequences of the graph. Nothing when the marks don't divide it, or there is a boundary already.
std::optional<TrainingGraph> with_boundary(const TrainingGraph& graph);

// For each value the ops that read it, ascending.
std::vector<std::vector<OpId>> readers_of(const TrainingGraph& graph);

// Throws std::invalid_argument ("[graph] what is wrong, and what to do") unless: ids are in range, names unique, forward ops
// come first (where there is a boundary), every input is resident, a tangent (backward ops only) or written by an earlier op,
// each value has the producer that lists it, and bytes and times are finite and not negative.
void check_graph(const TrainingGraph& graph);

}  // namespace rockmate

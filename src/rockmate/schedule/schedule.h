// A schedule: the actions of one training step, in order.
//
// The example of graph.h with y recomputed in the backward pass (h is kept) reads
//
//   compute 0, compute 1, compute 2, free y          (forward; forward_end is after these)
//   compute 3, free dloss, compute 1, free h, compute 4, free dy, free y, compute 5, free dh
//
// What an action means, for every piece of code that reads schedules:
//   * compute op: every input is alive. All outputs are allocated, so the bytes inside the op are those alive before it plus
//   all
//     its outputs plus its workspace. An output that was alive already keeps its old instance and the new one is dropped
//     when the op ends.
//   * free value: it is alive, not resident, and its retention allows it. What is kept until the forward pass ends may go once
//     the last forward op has run: before the tangents appear.
//   * when the forward pass ends, the tangents appear.
//   * a random op that is computed again later holds rng_state_bytes from its first compute (inside included) until its last
//     one ends, and every compute but the first holds as many bytes more while it runs (the stream's own state, set aside).
#pragma once

#include <cstddef>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

struct Action {
  enum class Kind : std::uint8_t { kCompute, kFree };
  Kind kind = Kind::kCompute;
  std::int32_t id = kNone;  // OpId of a compute, ValueId of a free

  static Action compute(OpId op) { return {Kind::kCompute, op}; }
  static Action free(ValueId value) { return {Kind::kFree, value}; }
  bool operator==(const Action&) const = default;
};

struct Schedule {
  std::vector<Action> actions;
  std::size_t forward_end = 0;  // actions[0 .. forward_end) run in the forward pass
};

// What a solver decides is only which op runs when: `sequence` holds the forward pass (each forward op once, in graph order;
// its length is num_forward_ops) and then the backward pass with its recomputations. The frees follow: each value instance
// dies right after its last use before it is computed again or the step ends, as far as its retention allows.
// Throws std::invalid_argument when an op's input can't be alive.
Schedule schedule_from_sequence(const TrainingGraph& graph, const std::vector<OpId>& sequence);

// The sequence without recomputations that nothing reads, found from the end backwards. Never longer, never a higher peak.
std::vector<OpId> without_dead_recomputations(const TrainingGraph& graph, const std::vector<OpId>& sequence);

// Every op once in graph order.
std::vector<OpId> store_all_sequence(const TrainingGraph& graph);

}  // namespace rockmate

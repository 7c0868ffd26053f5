// From a division of the forward pass into segments to a sequence that checkpoints at their borders.
//
//   forward ops    f0 f1 | f2 f3 | f4 f5      segment_of = 0 0 1 1 2 2
//   one level      the forward pass keeps what crosses a border: the outputs of f1 and f3 (and all of the last segment)
//                  backward of segment 2, f2 again, backward of 1, f0 again, backward of 0
//   two levels     [0 1] and [2] at the top: only the output of f3 is kept; then f0 f1 again, keeping the output of f1; f2
//   again,
//                  backward of 1; f0 again, backward of 0
//
// Shared by the planners that checkpoint segments (Chen, Kusumoto). What holds for all:
//   * The forward edges lead from a segment to itself or to a later one; a segment need not be contiguous in graph order.
//   * A backward op runs with the last segment at which all that it reads is at hand: where a forward op of that segment
//     reads the value too, or made it. Without forward values it runs as soon as its gradients are there, or waits for its
//     reader when that takes less memory.
//   * Before a segment's backward, all its values that backward ops read are recomputed, in graph order, from what is kept. The
//     step's own forward pass comes first, so whatever is the last part at each level is kept without a recomputation.
//   * What an op with side effects wrote, and what leaves the step, is never dropped.
#pragma once

#include <functional>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

class Checkpoints {
 public:
  // segment_of: by forward op, 0 .. number of segments - 1.
  Checkpoints(const TrainingGraph& graph, std::vector<int> segment_of);

  int num_segments() const { return num_segments_; }
  // Bytes of all values that each segment writes.
  const std::vector<Bytes>& segment_bytes() const { return segment_bytes_; }

  // Divides segments [begin, end): where parts begin, ascending, strictly between the two. Empty: all is kept at once.
  using Split = std::function<std::vector<int>(int begin, int end)>;

  std::vector<OpId> sequence(const Split& split) const;
  // One level: every segment is a part.
  std::vector<OpId> flat_sequence() const;

 private:
  friend class CheckpointWriter;

  void assign_backward();
  void delay_free_ops(const std::vector<OpId>& free_ops);

  const TrainingGraph& graph_;
  OpId num_forward_;
  int num_segments_ = 1;
  std::vector<std::vector<OpId>> readers_;
  std::vector<int> segment_of_;  // by op, backward ops too
  std::vector<Bytes> segment_bytes_;
  std::vector<std::vector<OpId>> backward_;      // by segment, ascending
  std::vector<std::vector<ValueId>> written_;    // by segment: values that may be dropped and made again
  std::vector<std::vector<OpId>> own_backward_;  // by value: backward readers, ascending
};

}  // namespace rockmate

// The memory of a sequence, position by position, for solvers that change sequences: who is alive where, in O(length).
//
// In the example of graph.h, the sequence mm relu sum | expand_copy relu relu_backward mm_backward has y written at positions 1
// and 4 and read at 2 and 5: two instances, [1, 2] and [4, 5]; nothing of y is held at position 3. Values that no op
// writes (tangents) count as written at the first backward position, unless nobody reads them. The judge of a finished schedule
// is the simulator; this is the solvers' own count and shares nothing with it.
#pragma once

#include <span>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

class SequenceMemory {
 public:
  SequenceMemory(const TrainingGraph& graph, const std::vector<OpId>& sequence);

  struct Event {
    int position;
    bool is_write;
  };
  // All writes and reads of a value that is not resident, ascending by position.
  std::span<const Event> events(ValueId value) const {
    return {events_.data() + first_event_[value], events_.data() + first_event_[value + 1]};
  }

  // Bytes held while each position runs: alive values, outputs and workspace.
  const std::vector<Bytes>& inside() const { return inside_; }
  Bytes peak_bytes() const { return peak_bytes_; }
  int peak_position() const { return peak_position_; }
  // Positions that hold the peak.
  int num_at_peak() const { return num_at_peak_; }

  // The most bytes inside positions [begin, end); 0 for an empty range.
  Bytes max_inside(int begin, int end) const;
  // Bytes alive between the forward and the backward pass, tangents not counted.
  Bytes kept_bytes() const { return kept_bytes_; }

 private:
  void collect_events(const TrainingGraph& graph, const std::vector<OpId>& sequence);
  void add_lifetimes(const TrainingGraph& graph, int length);
  void add_generator_states(const TrainingGraph& graph, const std::vector<OpId>& sequence);
  void sum_up(const TrainingGraph& graph, const std::vector<OpId>& sequence);
  void hold(int begin, int last, Bytes bytes);

  int num_forward_ = 0;
  std::vector<int> first_event_;
  std::vector<Event> events_;
  std::vector<Bytes> inside_;
  std::vector<Bytes> chunk_max_;  // of each 64 positions
  Bytes peak_bytes_ = 0, kept_bytes_ = 0, tangent_bytes_ = 0;
  int peak_position_ = 0, num_at_peak_ = 0;
};

// Summed time of a sequence.
Micros sequence_time_us(const TrainingGraph& graph, const std::vector<OpId>& sequence);

}  // namespace rockmate

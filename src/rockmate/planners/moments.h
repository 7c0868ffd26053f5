// Moments of a schedule: what is certain about them whatever the schedule.
#pragma once

#include <limits>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

inline constexpr Micros kNever = std::numeric_limits<Micros>::infinity();
inline constexpr OpId kBoundary = -2;  // the moment between the passes

// The first run of an op, or the boundary.
struct Moment {
  enum class At : std::uint8_t { kHeld, kOpen, kUnborn };  // held in any case, to be decided, not there yet
  Bytes fixed_bytes = 0;                                   // held in any case, the op's workspace included
  std::vector<At> at;                                      // by value
  std::vector<Micros> rerun_us;                            // by op: price of running after the moment; kNever where it may not
  std::vector<char> has_run;                               // by op: certain to have run before, or to be running
  std::vector<char> will_run;                              // by op: certain to run after
  std::vector<ValueId> reads;                              // certain to be read after
};

class MomentMaker {
 public:
  explicit MomentMaker(const TrainingGraph& graph)
      : graph_(graph), num_forward_(num_forward_ops(graph)), readers_(readers_of(graph)) {}

  Moment make(OpId d) const;

 private:
  void hold(ValueId v, Moment& moment) const;
  void mark_ancestors(OpId d, std::vector<char>& marked) const;
  void mark_descendants(OpId d, std::vector<char>& marked) const;
  void set_values(OpId d, Moment& moment) const;
  void set_prices(Moment& moment) const;
  void set_reads(Moment& moment) const;

  const TrainingGraph& graph_;
  OpId num_forward_;
  std::vector<std::vector<OpId>> readers_;
};

}  // namespace rockmate

// The dynamic program of Kusumoto et al. 2019 over a family of lower sets: its steps, what they cost, and the best sequence of
// them within a memory B. The paper, its symbols and the departures from it are at the top of kusumoto.h.
#pragma once

#include <optional>

#include "rockmate/planners/lower_sets.h"
#include "rockmate/planners/planners.h"

namespace rockmate {

class LowerSetProgram {
 public:
  static constexpr std::size_t kMaxLowerSets = 1200;
  static constexpr int kTimes = 256;

  // `family`: lower sets, the empty one first, all ops last, larger ones after smaller ones. `context` is polled and must
  // outlive the program.
  LowerSetProgram(const TrainingGraph& graph, std::vector<OpSet> family, const PlannerContext& context);

  // What one transition L -> L' costs.
  struct Step {
    Micros recompute_us = 0;  // T(V' \ d(L')); 0 when L' is V
    Bytes kept_bytes = 0;     // M(d(L') \ L), and what is never dropped
    Bytes peak_bytes = 0;     // M(V') and gradients, without M(U)
  };
  Step step(const OpSet& from, const OpSet& to) const;

  // What all steps together would hold at most: no B above it changes anything.
  Bytes most_bytes() const { return most_bytes_; }

  struct Strategy {
    std::vector<int> segment_of;  // by forward op: i of V_i, from 0
    Micros recompute_us = 0;
  };
  // Time-centric and memory-centric strategy within B; nothing when there is none (or time is up).
  std::optional<std::pair<Strategy, Strategy>> solve(Bytes b) const;

 private:
  struct Arc {
    int from;
    float recompute_us;
    float kept_bytes, peak_bytes;
  };
  // What an op adds to a step, by the set that the step ends in.
  struct Share {
    float recompute_us;
    float kept_bytes, inner_bytes;
  };

  void measure_ops();
  std::vector<Share> shares(const OpSet& to) const;
  void connect(int to);
  Strategy trace(const std::vector<int>& sets) const;

  const TrainingGraph& graph_;
  std::vector<OpSet> family_;
  const PlannerContext& context_;
  OpId num_forward_;
  std::vector<std::vector<OpId>> readers_;
  std::vector<char> needed_;    // by op: the backward pass depends on it
  std::vector<Bytes> working_;  // by forward op: what its backward ops hold at once, or what recomputing it holds besides
  Bytes most_bytes_ = 0;
  std::vector<std::vector<Arc>> arcs_;  // by the set they lead to
};

}  // namespace rockmate

// Ruin and recreate (Schrimpf et al., Journal of Computational Physics 159, 2000): improves a plan within a budget by taking
// many of its recomputations out at once and bringing the peak down again.
//
// Polishing (solvers/polish.h) exchanges one recomputation for another and soon ends at a plan that no small exchange betters:
// on a UNet at a fifth of its memory, within a second, and two percent of the step above or below the next such plan. A round
// here
//   1. takes out the recomputations of some neighbouring ops, those in some stretch of the sequence, or a random share of all;
//   2. evicts until the budget holds again, in a shaken order (planner/descents.h);
//   3. polishes briefly;
// and goes on from the outcome where it is no slower than before by more than a threshold that falls to nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

struct RuinOptions {
  Bytes budget_bytes = 0;
  double seconds = 1;                                                  // the thresholds end here ...
  std::int64_t max_rounds = std::numeric_limits<std::int64_t>::max();  // ... or here, whichever comes first (share_done.h)
  std::uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;
};

// The fastest sequence within the budget that was found; `sequence` itself where none is faster, or where it is not within. On
// one thread; a round takes some milliseconds for 1000 ops, and more than linearly longer for more.
std::vector<OpId> ruin_and_recreate(const TrainingGraph& graph, const std::vector<OpId>& sequence, const RuinOptions& options);

}  // namespace rockmate

// Polishing: improves a whole sequence within a budget by changing a little of it again and again, order included.
//
// Simulated annealing over whole sequences, after FastSA (Killamsetty et al., NeurIPS 2023), whose moves are add, remove and
// move one op. Departures. A round here is larger: it disturbs (takes recomputations out, moves an op, or adds one), then
// repairs (while the peak exceeds the budget, some value that lies idle at the peak is dropped there and recomputed before its
// next read, with what that needs), then fills (takes recomputations out for which there is room). So nearly every round ends
// within the budget, and whole exchanges are judged, not halves of them. What is idle at a slot is found by scanning flat
// arrays of gaps (time_line.h).
//
//   energy = time + (what no recomputation saves + penalty x bytes) above the budget;  a round that raises it by d stays with
//   probability exp(-d / temperature)
//
// Random ops keep their order, so the random stream stays as it is. Claims no optimum.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

struct PolishOptions {
  Bytes budget_bytes = 0;
  double seconds = 1;                                                  // the schedule of temperatures ends here ...
  std::int64_t max_rounds = std::numeric_limits<std::int64_t>::max();  // ... or here, whichever comes first (share_done.h)
  std::uint64_t seed = 1;
  double heat = 1;      // the first temperature, in units of an op's mean time
  bool gradual = true;  // a start above the budget is brought down over the first part of the run, not at once
  const std::atomic<bool>* stop = nullptr;
};

struct PolishResult {
  std::vector<OpId> sequence;  // the best found: within the budget if any was
  Bytes peak_bytes = 0;
  Micros time_us = 0;
  std::int64_t rounds = 0;
};

// `sequence` may exceed the budget: then the peak is brought down first, as far as it goes.
PolishResult polish(const TrainingGraph& graph, const std::vector<OpId>& sequence, const PolishOptions& options);

}  // namespace rockmate

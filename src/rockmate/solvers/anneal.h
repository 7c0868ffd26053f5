// Annealing on the excess: from a sequence far above the budget to one within it, order and recomputations together.
//
// Simulated annealing of the whole sequence after FastSA (Killamsetty et al., NeurIPS 2023): ops are added, removed and moved
// one at a time, and a sequence above the budget is allowed and penalised. Departures:
//   * The penalty is not on the peak but on the excess over the budget summed over all positions (position_line.h). The peak is
//     one position; a change that frees memory anywhere else above the budget leaves it as it is and would be judged useless.
//     With the sum, every byte freed where it is too much counts, and so does how long. That replaces the paper's first stage
//     (the same search on grouped ops until the budget holds).
//   * The weight of the excess grows as the temperature falls: at first memory and time are traded against each other, in the
//     end the budget holds. The paper's second stage, which drops recomputations again, is the cool part of the same run.
//   * An op is added with some of what it needs, where a value lies idle while memory is scarce; and a recomputation is taken
//     out together with another one put in where that costs memory. Most of what could be added is turned down before it is
//     put in: it takes longer than all the excess is worth that it could free where its outputs lie idle.
//
//   energy = time + weight x excess;  a trial that raises it by d stays with probability exp(-d / temperature)
//
// Strong where order and single values decide (graphs without a chain), at any distance from the budget; polish.h, which always
// stays near the budget, is the better one on a sequence that is good already. Random ops keep their order. Claims no optimum.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

struct AnnealOptions {
  Bytes budget_bytes = 0;
  double seconds = 1;                                                  // the schedule of temperatures ends here ...
  std::int64_t max_trials = std::numeric_limits<std::int64_t>::max();  // ... or here, whichever comes first (share_done.h)
  std::uint64_t seed = 1;
  double heat = 1;  // the first temperature, in units of an op's mean time; low to go on from a good sequence
  const std::atomic<bool>* stop = nullptr;
};

struct AnnealResult {
  std::vector<OpId> sequence;  // the fastest within the budget; where none was found, the one at the end
  Bytes peak_bytes = 0;
  Micros time_us = 0;
  std::int64_t trials = 0;
};

AnnealResult anneal(const TrainingGraph& graph, const std::vector<OpId>& sequence, const AnnealOptions& options);

}  // namespace rockmate

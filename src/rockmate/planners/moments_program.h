// Several moments of a schedule at once, as an integer program: a bound that one moment alone does not give.
//
// Moments d_1, d_2, ... each descend from the one before, so every schedule passes them in this order, whatever else it orders
// differently. With k[j, v]: v is held at d_j; r[j, o]: o runs between d_j and d_{j+1} (after the last: until the end):
//
//   minimise  sum of time_o r[j, o]  over ops that have run before d_j
//   k[j, v] + r[j, producer] >= 1            what an op reads that is certain to run between d_j and d_{j+1}
//   k[j, v] + r[j, producer] + r[j + 1, producer] + ... >= 1      ... or certain to run after d_j
//   k[j, v] + r[j, producer] >= r[j, o]      what o reads
//   k[j + 1, v] <= k[j, v] + r[j, producer]  where v was certain to exist at d_j
//   sum of bytes_v k[j, v] <= budget - what is held at d_j in any case
//
// An op that runs twice between two moments is counted once: a bound still. One moment gives the program of lower_bound.h.
#pragma once

#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

// Recomputation time that every schedule within the budget has at least; what the solver has proved within its limits, 0 for
// graphs that are too large.
Micros bound_of_moments(const TrainingGraph& graph, Bytes budget_bytes, const std::vector<OpId>& moments);

// Some moments that every schedule passes in this order, `through` one of them: those that hold most without recomputation.
std::vector<OpId> moments_around(const TrainingGraph& graph, OpId through);

}  // namespace rockmate

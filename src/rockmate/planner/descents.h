// Descents to one budget from several faster plans.
//
// Where a descent ends depends on where it begins and on what is evicted first, and one costs milliseconds: of a hundred from
// the next few dozen plans above a budget, the best is often within a percent of what long polishing comes to.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

inline constexpr OpId kMaxOpsOfDescents = 10'000;  // on larger graphs one takes seconds

// Eviction from the sequence down to the budget (solvers/evict.h), what room is left filled with recomputations that are not
// needed (solvers/keep.h). Above the budget where eviction comes to an end there, or `stop` is set.
std::vector<OpId> descent(const TrainingGraph& graph, const std::vector<OpId>& start, Bytes budget_bytes,
                          const std::atomic<bool>* stop = nullptr, std::uint64_t seed = 0);

// How many descents a graph of that size is worth: `most` up to 2500 ops, above that so many as take the same time, whose part
// for one grows with the square of the ops, but no fewer than `least`.
std::int64_t num_descents(const TrainingGraph& graph, std::int64_t least, std::int64_t most);

// Begins at the first 32 of the starts, in turn: the first descent from each is the plain one, the further ones are shaken.
// Their number follows from the size of the graph: 128, fewer where one takes long, none above kMaxOpsOfDescents; they run on
// so many threads (0: all cores). Those not begun when `stop` is set are empty.
std::vector<std::vector<OpId>> descents(const TrainingGraph& graph, const std::vector<const std::vector<OpId>*>& starts,
                                        Bytes budget_bytes, int threads, const std::atomic<bool>& stop);

}  // namespace rockmate

// Keeping: takes recomputations out of a sequence again while its peak stays within a budget.
//
// A plan made for a budget rarely fills it: levels are rounded up, and what a block does not use no other block gets. Without
// the second compute of an op, the readers of its outputs use the instance before, which then lives longer. The
// recomputations that save the most time per byte go first, until none fits.
#pragma once

#include <atomic>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

// Never slower than the sequence, never above max(budget, the sequence's own peak). Once `stop` is set, what has been taken out
// by then is.
std::vector<OpId> keep_within(const TrainingGraph& graph, std::vector<OpId> sequence, Bytes budget_bytes,
                              const std::atomic<bool>* stop = nullptr);

}  // namespace rockmate

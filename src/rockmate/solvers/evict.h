// Eviction: one greedy descent from a sequence to lower and lower peaks, on any graph.
//
// At the position that holds the peak, some values are alive but idle: not read or written there. Dropping one before the peak
// and recomputing it right before its next use in the backward pass frees its bytes at the peak, and costs the time of its
// producer and of those of its inputs that are gone by then and have no room to stay. The value with the most bytes freed per
// microsecond goes first; a move that does not lower the peak is taken back and not tried there again.
//
//   mm relu sum | expand_copy relu_backward mm_backward           peak at relu_backward: h is dead, y in use: nothing idle
//   with h alive until mm_backward instead: h idle at the peak -> ... | expand_copy relu_backward mm mm_backward
//
// The idea is that of DTR (Kirisame et al., arXiv 2006.09616), whose eviction score is bytes over cost, applied offline at the
// known peak; departures: no staleness (the next use is known), and inputs may be kept longer instead of recomputed.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

// Lowers the peak of the sequence until it is at most `target_bytes` or no move helps. After every move that lowers the peak,
// `on_lower(sequence, peak_bytes)` is called; false stops the descent. Returns the last sequence. With seed 0 the best move
// goes first; every other seed shakes the scores by about a factor of two, and comes out elsewhere.
std::vector<OpId> evict(const TrainingGraph& graph, std::vector<OpId> sequence, Bytes target_bytes,
                        const std::function<bool(const std::vector<OpId>&, Bytes)>& on_lower = {}, std::uint64_t seed = 0);

}  // namespace rockmate

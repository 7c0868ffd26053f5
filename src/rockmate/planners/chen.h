// Sublinear memory: "Training Deep Nets with Sublinear Memory Cost" (Chen et al. 2016, arXiv 1604.06174).
//
// chen-sqrt, the paper's Algorithm 3, memory planning with budget. Symbols are the paper's:
//
//   C      candidate stage splitting points: places in the order of ops where the forward pass may be cut
//   b      budget of one segment: ops are gathered until their outputs exceed b, then the next candidate becomes a border
//   x      bytes kept at all borders;  y  bytes of the largest segment;  the peak is about x + y
//
//   sizes 3 3 3 3 3 3, b = 5:    [3 3] [3 3] [3 3]    x = 6 (the last segment hands on nothing), y = 6
//
// The forward pass keeps the borders; the backward pass recomputes one segment at a time from them. With equal sizes the least
// peak has about sqrt(n) segments.
//
// chen-recursive, the paper's section 4.4: a segment's forward and backward is planned the same way in its turn. Each level
// divides a segment into k + 1 parts and keeps the k borders between them, g(n) = k + g(n / (k + 1)): memory k log n / log(k +
// 1), for one more forward pass a level. Recursion ends where a segment holds at most b bytes (or has one op).
//
// Departures. The search over b is not around sqrt(x y) but over all that leads to different segments, and over k: the
// fastest plan within the budget is wanted, not the least peak. C is the places where one value crosses once pinned values
// are looked through (partition/cuts.h); and besides, all places, with everything that crosses kept, so that graphs without
// cuts have plans too. The last segment is not recomputed: the forward pass has
// just left it.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer chen_sqrt(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);
PlannerAnswer chen_recursive(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

// Algorithm 3 alone: where segments begin (without the first), given each op's output bytes, the ops after which a cut is
// allowed, ascending, and b.
std::vector<OpId> chen_segments(const std::vector<Bytes>& output_bytes, const std::vector<OpId>& candidates, Bytes b);

}  // namespace rockmate

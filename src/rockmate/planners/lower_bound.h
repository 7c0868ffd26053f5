// What no schedule within a budget goes below.
//
// Look at one moment d of any schedule: the first run of an op, or the boundary between forward and backward. What is certain
// to run after it (the backward pass; descendants of d) reads values; each is held at d or its producer runs after d, and then
// what that reads is held or runs again, and so on. With k_v = 1 when v is held at d, r_o = 1 when o runs after d:
//
//   minimise  sum of time_o r_o  over ops that have run before d
//   k_v + r_producer(v) >= 1     for each v that is certain to be read after d
//   k_v + r_producer(v) >= r_o   for each v that o reads
//   sum of bytes_v k_v <= budget - what is held at d in any case        (d's inputs and outputs, its workspace, ...)
//
// In the example of graph.h at the boundary: dh needs y, dw needs only resident x. Held 8 MiB, or relu runs again and h is
// held.
//
// Without the last row this is a cheapest cut, as no row says more than "a without b costs c" once k_v is written as
// [v needed] and not r_producer(v). So the linear relaxation is the maximum over a price per byte of (cheapest cut - price x
// room), found by a few cuts; no linear program is solved. Nothing here assumes an order of backward ops, nor how often a value
// is recomputed. The bound is the best one over the moments tried: those that hold most when nothing is recomputed. What ran
// before d may run again, at its time; what need not have run before d costs nothing; a backward op (or one with side effects)
// that has run can't run again. Without a boundary every op is such a moment.
//
// On graphs of up to 600 ops some moments are then taken together, and in integers: moments_program.h. On larger ones the bound
// does not see that recomputed values need room too and may be recomputed more than once: at low budgets it is far below.
#pragma once

#include "rockmate/graph/graph.h"

namespace rockmate {

// A plan within this share of the bound is called optimal: what the tolerances of a linear program leave open.
inline constexpr double kOptimalGap = 1e-4;

// Recomputation time that every schedule of the graph with a peak of at most budget_bytes has at least. Infinite when some
// moment is certain to hold more: then there is no schedule.
Micros lower_bound_us(const TrainingGraph& graph, Bytes budget_bytes);

// The bound of single moments alone, which no program makes slow: at most lower_bound_us.
Micros quick_lower_bound_us(const TrainingGraph& graph, Bytes budget_bytes);

// No schedule has a lower peak: the most that any single op's inputs, outputs and workspace take.
Bytes working_set_floor(const TrainingGraph& graph);

// No schedule has a lower peak: the most that any moment tried is certain to hold, the working set included.
Bytes peak_floor(const TrainingGraph& graph);

}  // namespace rockmate

// Moccasin (Bartan et al., arXiv 2304.14463): retention intervals, at most two of each value, ops in a fixed order.
//
//   each value v is computed at its place in the order and held for an interval; it may be computed once more (C = 2) in a
//   later stage and held for a second one. Every read lies in an interval; the bytes of all intervals over a position, with
//   what its op takes, are within the budget. Minimise the time of the second computations.
//
//   y computed at relu, held to sum; computed again in the stage of relu_backward, which reads it: intervals [1, 2] and [4, 4].
//
// The paper solves this by constraint programming with integer ends of intervals. Here it is an integer program:
// stage_program.h with at most one recomputation of each op, and with a *reach*: an op runs again only in a stage that reads
// its result, or that runs an op again which does (reach 2), and so on. That leaves a hundredth of Checkmate's variables. The
// reach is widened step by step, each program beginning from the solution before, until it leaves nothing out.
//
// What is proved is the optimum over sequences of at most two computations a value where the second one is made in a stage that
// reads it. Departure: the paper also lets a second interval begin before the stage of its first read, which pays only where
// an op's result is smaller than its inputs.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer moccasin(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

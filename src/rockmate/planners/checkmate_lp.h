// Checkmate's approximation (Jain et al., arXiv 1910.02653, section 5): the linear relaxation, rounded in two phases.
//
//   1. S* of the relaxation is rounded: S[t, v] = 1 where S*[t, v] is above a threshold. Deterministic: one threshold for all,
//      0.5 and a few around it. Randomized: a threshold drawn for each entry.
//   2. R is the least that makes S possible: what stage t reads, or holds at its end, is held when it begins or runs in it, and
//   so
//      do its inputs.
//
// Rounding up breaks the budget, so the relaxation is solved for (1 - epsilon) of it, with epsilon raised until a rounding
// fits; the fastest that fits the true budget is the answer. Proves nothing.
//
//   S*[4, y] = 0.4, S*[4, h] = 0.7, threshold 0.5: h held, y not; relu_backward in stage 4 reads y: R[4, relu] = 1.
//
// Departures: the relaxation is that of stage_program.h; epsilon is searched from 0 instead of fixed at 0.1; draws are from
// a fixed seed.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer checkmate_lp(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

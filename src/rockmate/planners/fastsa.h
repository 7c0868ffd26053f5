// FastSA: simulated annealing over the whole op sequence (Killamsetty et al., NeurIPS 2023), with no structure given: from the
// graph's own order, ops are added, removed and moved on a line of slots whose memory a segment tree keeps, O(log slots) an
// edit.
//
// The search is solvers/polish.h, whose header states the departures: rounds of disturb, repair and fill instead of single
// moves on grouped ops first and single ops later. The paper's first stage (until the budget holds) is the part of the run in
// which the budget comes down from the plain peak, its second the rest. It takes the time that it is given: `polish_s`, or
// twice auto's share.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer fastsa(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

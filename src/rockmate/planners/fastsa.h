// FastSA: simulated annealing over the whole op sequence (Killamsetty et al., NeurIPS 2023), with no structure given: from the
// graph's own order, ops are added, removed and moved on a line whose memory is kept exact.
//
// The paper's first stage, until the budget holds, is solvers/anneal.h; its second, which drops needless recomputation, is
// solvers/polish.h. Their headers state the departures. It takes the time that it is given: `polish_s`, or twice auto's share.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer fastsa(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

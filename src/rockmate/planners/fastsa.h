// FastSA: simulated annealing over the whole op sequence (Killamsetty et al., NeurIPS 2023), with no structure given: from the
// graph's own order, ops are added, removed and moved on a line whose memory is kept exact.
//
// The paper's first stage, until the budget holds, is solvers/anneal.h; its second, which drops needless recomputation, is
// solvers/polish.h. Their headers state the departures. Its work is a number of trials: what a slow machine does in most of
// the time that it is given (`polish_s`, or 3 s and 2 ms for each op). So it finds the same plan every time, and auto, which
// has it run beside its own search, is never worse.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer fastsa(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

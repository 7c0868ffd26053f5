// The default planner: at least as good as every other one, then polished as a whole.
//
//   1. the curve of plan_curve, finest around the budget: the plans just within and just above it
//   2. every quick planner of the table, a second each at most, side by side
//   3. annealing on the excess (solvers/anneal.h) from the plain order, which finds other orders: most of the time for
//      polishing where the graph has no chain, a little of it elsewhere
//   4. polishing (solvers/polish.h) of the best starts, hot and cold, in rounds that get longer, each from the best so far,
//      until two rounds bring nothing, the lower bound is reached, or the time for it (options.polish_s) is over
//
// Where nothing from 1 and 2 meets the budget, annealing and polishing first seek the lowest peak at all, with a fixed number
// of trials: the least budget that is named is met when it is asked for with as much time.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer auto_planner(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

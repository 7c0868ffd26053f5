// The default planner: at least as good as every other one, then polished as a whole.
//
//   1. the curve of plan_curve, finest around the budget: the plans just within and just above it
//   2. every quick planner of the table, a second each at most, side by side
//   3. polishing (solvers/polish.h) of the best starts, hot and cold, in rounds that get longer, each from the best so far,
//      until two rounds bring nothing, the lower bound is reached, or the time for it (options.polish_s) is over
//
// Where nothing meets the budget, polishing first seeks the lowest peak at all, with a fixed number of rounds: the least budget
// that it names is met when it is asked for.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer auto_planner(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

// The default planner: at least as good as every other one, then polished as a whole.
//
//   0. on graphs of up to 4000 ops fastsa's own run, in a thread beside all that follows (with one thread: last)
//   1. the curve of plan_curve, finest around the budget: the plans just within and just above it; hiremate's plan too where
//      that is far above the lower bound
//   2. where the graph has no chain, or is small: annealing on the excess (solvers/anneal.h) from the plain order, which finds
//      other orders, for most of the time for polishing
//   3. where nothing meets the budget yet: a search for the lowest peak at all. Its number of trials does not depend on the
//      budget: the least budget that is named is met when it is asked for with as much time.
//   4. polishing (solvers/polish.h) of the best starts, hot and cold; then, from the best so far, ruin and recreate
//      (planner/ruin_recreate.h) and polishing by turns, which get longer, until two bring nothing, the lower bound is reached,
//      or the time for it (options.polish_s) is over
//   5. every quick planner of the table: one that is better is polished in its turn; before 4 where 3 has found nothing
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer auto_planner(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

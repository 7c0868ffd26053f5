// One plan of the curve, made faster for a budget.
//
// The curve's plans are made block by block and in one order of ops, and end a little below the budget. Polishing
// (solvers/polish.h) changes the whole sequence: exchanges across blocks, memory that was left over, another order. Descents
// from faster plans (descents.h) and ruin and recreate (ruin_recreate.h) get over what single exchanges can't.
#pragma once

#include "rockmate/planner/planner.h"

namespace rockmate {

// The curve's plan within the budget, or a faster one. The work is a number of rounds by the size of the graph: the same plan
// comes out every time, unless options.time_limit_s is over before (1 to 3 s for 1000 ops on two cores).
//
// Throws std::invalid_argument when the curve has no plan within the budget, Interrupted when on_progress asked to stop.
Plan polished_plan(const TrainingGraph& graph, const PlanCurve& curve, Bytes budget_bytes, const PlannerOptions& options = {});

}  // namespace rockmate

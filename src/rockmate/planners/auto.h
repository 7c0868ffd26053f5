// The default planner: the best start that any planner has within the budget, then polished as a whole (solvers/anneal.h).
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer auto_planner(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

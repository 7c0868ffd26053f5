// The stage of a plan that works on the whole graph: eviction from the top, and between the plans at hand.
#pragma once

#include "rockmate/planner/frontier.h"
#include "rockmate/planner/planner.h"
#include "rockmate/planner/stage_runner.h"

namespace rockmate {

// Adds what eviction finds: one descent from store-all, one below the lowest plan, at each of curve_points budgets a short
// descent from the next faster plan, one below each of the lowest few, and at last at the focus some hundred from the next
// plans above (descents.h); each is filled up again with recomputations that are not needed.
void add_whole_graph_plans(const TrainingGraph& graph, const PlannerOptions& options, StageState& state, Frontier& frontier);

}  // namespace rockmate

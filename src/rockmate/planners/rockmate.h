// Rockmate (Zhao et al., arXiv 2307.01236) as planner/plan_curve.h has it: options of each block by search and integer program,
// the chain by dynamic programming, eviction over the whole graph where there is no chain. The answer is the curve's point
// within the budget, and the curve is sought finely around it, with few points elsewhere.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

// Options of a curve that is made for one budget: fine around it, few points elsewhere.
PlannerOptions focused(PlannerOptions options, Bytes budget_bytes);

PlannerAnswer rockmate_planner(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

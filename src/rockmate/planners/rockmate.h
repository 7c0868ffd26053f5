// Rockmate (Zhao et al., arXiv 2307.01236) as planner/plan_curve.h has it: options of each block by search and integer program,
// the chain by dynamic programming. The answer is the curve's point within the budget, and the curve is sought finely around
// it, with few points elsewhere.
//
// `rockmate-chain` ends there, as the paper does. `rockmate` goes on over the whole graph: what rounding and block-wise peaks
// left over is filled, values are evicted from faster plans until the budget holds (planner/descents.h), and a graph without a
// chain is planned by eviction alone.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

// Options of a curve that is made for one budget: fine around it, few points elsewhere.
PlannerOptions focused(PlannerOptions options, Bytes budget_bytes);

PlannerAnswer rockmate_planner(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);
PlannerAnswer rockmate_chain(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

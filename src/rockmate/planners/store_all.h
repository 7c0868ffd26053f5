// Store-all: the graph's own order, no recomputation. What every other planner is measured against.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer store_all(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

// That answer where it is within the budget: what exact planners look at first.
std::optional<PlannerAnswer> store_all_within(const TrainingGraph& graph, Bytes budget_bytes);

}  // namespace rockmate

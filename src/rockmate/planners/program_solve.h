// What planners that solve programs have in common: a solve that can be stopped, and a sequence to begin from.
#pragma once

#include <string>
#include <vector>

#include "rockmate/ilp/model.h"
#include "rockmate/planners/planners.h"

namespace rockmate {

// Solves in a thread of its own while the caller's thread tells the context of it; ends with the context.
ilp::Outcome solve_within(const PlannerContext& context, const std::string& stage, const ilp::Model& model,
                          ilp::SolveOptions options);

// Eviction down to the budget, then filled up again. Empty when eviction does not get there.
std::vector<OpId> evicted_sequence(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

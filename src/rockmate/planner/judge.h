// From a solver's sequence to a plan: the one way, past the verifier and the simulator.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rockmate/planner/planner.h"

namespace rockmate {

// Drops dead recomputations, verifies, simulates. Nothing when the verifier refuses the schedule (a solver's bug: asserted).
std::optional<Plan> judged_plan(const TrainingGraph& graph, const std::vector<OpId>& sequence, const std::string& planner);

}  // namespace rockmate

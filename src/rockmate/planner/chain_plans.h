// The two stages of a plan that work on the chain: options for each class of blocks, then the whole chain at every memory.
#pragma once

#include "rockmate/partition/block_problem.h"
#include "rockmate/planner/frontier.h"
#include "rockmate/planner/planner.h"
#include "rockmate/planner/stage_runner.h"
#include "rockmate/solvers/block_options.h"
#include "rockmate/solvers/rk_rotor.h"

namespace rockmate {

// The options of each class, solved in parallel; a class found in options.cache_dir is not solved again.
std::vector<BlockOptions> solve_blocks(const BlockClasses& classes, const PlannerOptions& options, const StageRunner& runner,
                                       StageState& state);

// The chain as RotorTable wants it. `block_plans` holds the options of each class and must outlive the result.
std::vector<RotorBlock> rotor_blocks(const TrainingGraph& graph, const Chain& chain, const BlockClasses& classes,
                                     const std::vector<BlockOptions>& block_plans);

// A whole step from the backward pass of a RotorTable.
std::vector<OpId> whole_sequence(const TrainingGraph& graph, const BlockClasses& classes,
                                 const std::vector<std::pair<int, OpId>>& backward);

// Adds rk-Rotor's sequence for each of some curve_points memories. Rounding to steps of memory costs the more the lower the
// memory is: so it is divided over again for each halving, and around options.focus_bytes.
void add_chain_plans(const TrainingGraph& graph, const Chain& chain, const BlockClasses& classes,
                     const std::vector<BlockOptions>& block_plans, const PlannerOptions& options, const StageRunner& runner,
                     StageState& state, Frontier& frontier);

}  // namespace rockmate

// Rotor: the best step of a chain whose blocks keep all or nothing, for every memory, by dynamic programming.
//
// "Optimal checkpointing for heterogeneous chains: how to train deep neural networks with limited memory" (Beaumont,
// Eyraud-Dubois, Herrmann, Joly, Shilova 2019, arXiv 1911.13214). Symbols:
//
//   F_all^k   forward of block k that keeps all its inner values, as its backward needs them
//   F_ck^k    forward that keeps the block's input only;  F_none^k one that keeps nothing
//   C_BP(s, t, m)   least time of blocks s .. t within m bytes: F_all^s and the rest in what is left, or F_ck^s, F_none up to
//             some s', the rest from there, and then s .. s' - 1 again
//
// This is solvers/rk_rotor.h with one option for each block, its store-all. Departures are those that it states; besides,
// memory is rounded pessimistically there, so the plan is the fastest whose *simulated* peak is within the budget.
//
// What a block is decides much. `rotor` takes the better of the finest blocks that partition/chain.h finds (an
// attention and an MLP apart) and of whole layers; `rotor-layers` whole layers only, as the Rotor of the papers is given a
// sequence of layers. A layer is a period in the sequence of block classes: embedding (attention MLP) (attention MLP) ... head.
#pragma once

#include "rockmate/partition/block_problem.h"
#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer rotor(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);
PlannerAnswer rotor_layers(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

// The chain with blocks[begins[i] .. begins[i + 1]) put together; begins[0] is 0.
Chain merged_chain(const Chain& chain, const std::vector<int>& begins);

// Where layers begin: the shortest period that covers the most of the sequence; what lies outside stays as it is.
std::vector<int> layer_begins(const std::vector<int>& class_of);

}  // namespace rockmate

// PyTorch's activation memory budget: what torch.compile saves when `activation_memory_budget` is below 1
// (torch/_functorch/partitioners.py and _activation_checkpointing/knapsack.py of PyTorch 2.13). Our own code after the idea:
//
//   banned      forward ops that should not be recomputed: compute-intensive ones, random ones, reductions (the output is less
//               than a quarter of the inputs)
//   min cut     the cheapest set of values to save such that nothing banned is recomputed: values are edges with their bytes
//               as capacity (times 1.1 for each step away from the backward pass), banned ops hang on the source, what the
//               backward pass reads on the sink
//   knapsack    for a budget in [0, 1]: of the banned ops, those worth most runtime whose outputs fit in that share of
//               the activations stay banned, the others may be recomputed; then the min cut again. Dynamic program over
//               quantised memory, as PyTorch's default
//   budget 0    only the inputs are saved
//
//   schedule    each value that is not saved is recomputed once, right before its first use in the backward pass, with
//               what it depends on, and stays until its last use
//
// The budget that PyTorch takes is a share of saved activations and no peak. Here the planner tries budgets between 0 and 1 and
// returns the fastest plan whose peak is within the real one.
//
// Departures. Without Inductor nothing is fused, so the bans that guess at fusion (used far apart, long fusible chains,
// materialised in the backward pass) and the double price of values that are never materialised are left out: what PyTorch
// calls the aggressive end is the upper end here, and store-all beyond it. Compute-intensive is what has flops; in a graph
// without any, every op. Of ops that are equal to the knapsack the latest stay banned. Ops with side effects always do, and
// values that leave the step are saved for nothing.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer memory_budget(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

// A step that keeps only `saved` (by value) of the forward values: the rest is recomputed once, when it is first needed.
std::vector<OpId> sequence_with_saved(const TrainingGraph& graph, const std::vector<bool>& saved);

}  // namespace rockmate

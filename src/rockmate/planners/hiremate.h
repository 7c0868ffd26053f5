// HiRemate (Gusak et al., "HiRemate: Hierarchical Approach for Efficient Re-materialization of Neural Networks", ICML 2025):
// the graph is divided recursively, each sub-graph offers several options, and an integer program of the level above (H-ILP)
// picks one option of each. It needs no chain: any number of values may cross from one sub-graph to another.
//
//   option o   of sub-graph i: what it holds between its forward and its backward (saved_o), the most that its forward and its
//              backward hold (peaks), and the time of its recomputations (cost_o)
//   leaf       options of solvers/block_options.h: search and integer programs on its own graph at a grid of budgets
//   node       options from the H-ILP over its children at a grid of (save, peak) budgets:
//                minimise  sum of cost_o x[i, o],   one option of each child
//                backward of i:  crossing + sum of saved_o x[j, o] over j < i + peak_o x[i, o] <= peak budget;  forward alike
//                all of saved_o x[i, o] + crossing <= save budget
//              and, holding nothing in between, its whole forward run again before its backward: peak as before, cost + forward
//   root       the H-ILP at the budget
//
// On two children of a node, "save all, save half, save nothing" each, a peak budget just below "all, all" picks "half" of that
// child where it costs less.
//
// Departures, as the paper's programs are not at hand beyond its description. Sub-graphs are stretches of the graph's order.
// An option of a node is picked for its backward as a whole: the forward of one child is never run again alone for another
// child's backward, which the paper's H-ILP allows. What crosses between sub-graphs is held until the sub-graphs run again
// as a whole. The root is solved at several budgets around the true one, as the count of bytes is careful where sub-graphs
// meet; each answer is counted exactly and filled up (solvers/keep.h), and the fastest within the true budget is returned.
// Proves nothing.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer hiremate(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

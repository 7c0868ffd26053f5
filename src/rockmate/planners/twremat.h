// TWRemat (Kumar et al., "Efficient Rematerialization for Deep Networks", NeurIPS 2019): divide and conquer over a tree
// decomposition of the graph. With treewidth k, n ops run within the memory of O(k log n) of them in n k^O(log n) time.
//
//   (X, T)    tree decomposition of the undirected graph of ops: every edge lies in a bag of X, the bags of an op are connected
//   in T S         a bag that splits T into parts of at most half its ops: no edge joins two parts once S is taken out schedule
//   for p in S and the targets, in topological order: in each part, recursively, make what p reads; run p and hold it;
//             let go of everything else. At the end only the targets stay.
//
//   a -> b -> c -> d -> e, target e. S = {b, c}: (a), b, c, and hold b, c; then d within its part from c, e.
//
// The decomposition is by elimination of the op of least degree, as in the paper's experiments.
//
// Departures. In a training step with a boundary the forward pass runs once as it stands, and a backward op, which can't run
// again, is held from its run to its last reader. The recursion is stopped at each depth in turn, the deepest needing the least
// memory, and recomputations for which the budget has room are taken out again (solvers/keep.h). Proves nothing.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer twremat(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

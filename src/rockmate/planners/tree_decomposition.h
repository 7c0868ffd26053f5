// A tree decomposition of a graph's ops, and its recursive division by balanced separators.
#pragma once

#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

// bags[op] is what was left of op's neighbourhood when it was eliminated, with op itself; T joins it to the bag of the op of it
// that is eliminated next. Edges join an op and the ops that read its results.
struct TreeDecomposition {
  std::vector<std::vector<OpId>> bags;
  std::vector<OpId> parent;  // in T; kNone for a root
  int width() const;
};

TreeDecomposition min_degree_decomposition(const TrainingGraph& graph);

// T divided at a bag that halves it, then each part, and so on. Nodes are bags; op -> node is one to one.
struct SeparatorTree {
  std::vector<OpId> parent;  // the separator of the part that this bag divides; kNone at the top
  std::vector<int> depth;    // 0 at the top
  // The separator just below `above` on the way to the bag of `op`: names op's part. kNone when op is in none of them.
  OpId part_of(OpId op, OpId above) const;
};

SeparatorTree divide(const TreeDecomposition& decomposition);

}  // namespace rockmate

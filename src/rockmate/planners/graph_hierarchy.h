// The forward pass divided into sub-graphs, these put together into larger ones, and so on up to the whole.
//
//   ops 0 .. 9 | 10 .. 21 | 22 .. 30 | 31 .. 44 | ...   leaves: 6 to 18 forward ops in graph order, cut where few bytes cross
//   [ leaves 0 .. 3 ] [ leaves 4 .. 7 ] ...              nodes of 3 to 6 children, cut the same way
//   [ root ]
//
// Any number of values may cross from one sub-graph to others, which is what a chain of blocks does not allow. A backward op
// belongs to the leaf whose own values it reads.
#pragma once

#include <vector>

#include "rockmate/partition/chain.h"

namespace rockmate {

struct GraphHierarchy {
  struct Node {
    int first_leaf = 0, end_leaf = 0;
    std::vector<int> children;  // nodes, in forward order; empty for a leaf
    // By child: values made in this or an earlier child that cross between children, and between no larger nodes. They are held
    // while the child runs forward or backward.
    std::vector<Bytes> crossing_bytes;
  };

  Chain leaves;             // blocks of any number of inputs: all that crosses is pinned
  std::vector<Node> nodes;  // children before parents: the root is the last one; leaf k is node k
};

GraphHierarchy graph_hierarchy(const TrainingGraph& graph);

}  // namespace rockmate

// Computation graphs as Checkmate (arXiv 1910.02653) and Moccasin (arXiv 2304.14463) publish them: NetworkX node-link JSON.
//
//   {"directed": true, "multigraph": false, "graph": {"name": "VGG16"},
//    "nodes": [{"id": 0, "name": "conv1", "backward": false, "cost_cpu": 385, "cost_ram": 3288334336}, ...],
//    "links": [{"source": 0, "target": 1}, ...]}
//
// A node is an op with one output of cost_ram bytes that takes cost_cpu (taken for microseconds); a link is a read. The nodes'
// order is the order without recomputation. There is no workspace, and no boundary between the passes: any node may run again
// at any time. The last node's output stays to the end, every other one dies at its last use.
#pragma once

#include <string>

#include "rockmate/graph/graph.h"

namespace rockmate {

// Throws std::invalid_argument with the place and the trouble when the text is no such graph, or has a cycle. Nodes that are
// not in topological order are put into one, as near to theirs as can be. Both "links" and "edges" are read.
TrainingGraph graph_from_node_link(const std::string& text);

}  // namespace rockmate

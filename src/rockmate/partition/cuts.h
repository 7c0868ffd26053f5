// Where the forward pass can be cut: after an op where at most one value crosses, once pinned values are looked through.
//
//   op      0      1     2     3          x0 = f0(in)   a = f1(x0)   m = mask()   x1 = f3(x0, a, m)  ...
//   A cut after op 0 carries x0. After op 1 both x0 and a cross: no cut. If the mask m is made once and read by every layer, it
//   crosses everywhere and hides every cut; pinned, it is computed once, saved, and stays.
//
// Consecutive cuts that carry the same value count once (the first). A segment between two cuts is a candidate block.
#pragma once

#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

struct Cut {
  OpId after = kNone;     // the last forward op before the cut
  ValueId value = kNone;  // what crosses; kNone when everything that crosses is pinned
  bool is_fork = false;   // several forward ops read the value: a residual stream begins
  bool is_join = false;   // its producer reads several unpinned values: a residual stream ends
};

// All cuts, ascending.
std::vector<Cut> find_cuts(const TrainingGraph& graph, const std::vector<bool>& pinned);

// The cuts that are kept as block boundaries. The rule looks at the neighbourhood only, so that equal layers get equal blocks:
// forks first; joins where both sides keep a useful size; segments that are long and plain (no fork) are split into pieces of
// the length, in [min_ops, 2 min_ops], that gives the fewest different pieces; neighbouring tiny segments are put together.
std::vector<Cut> group_cuts(const TrainingGraph& graph, const std::vector<Cut>& cuts, int min_ops = 6);

}  // namespace rockmate

// The evicted neighbourhoods of h_DTR^eq (dtr.h): a union-find over evicted tensors with the summed cost of each class. As
// in the paper nothing is ever split: a tensor that comes back takes its own cost out and starts a new class.
//
//   evict a (cost 1), evict b (cost 2), neighbours: one class of cost 3.   b comes back: {a} of cost 1, {b} of cost 0
#pragma once

#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

class EvictedClasses {
 public:
  explicit EvictedClasses(ValueId num_values) : class_of_(num_values) {
    for (ValueId v = 0; v < num_values; ++v) leave(v);
  }

  int find(ValueId v) { return root(class_of_[v]); }
  Micros cost(int root) const { return cost_[root]; }
  void add_cost(ValueId v, Micros cost_us) { cost_[find(v)] += cost_us; }

  void join(ValueId a, ValueId b) {
    const int from = find(a), to = find(b);
    if (from == to) return;
    parent_[from] = to;
    cost_[to] += cost_[from];
  }

  // A class of its own, of no cost.
  void leave(ValueId v) {
    class_of_[v] = static_cast<int>(parent_.size());
    parent_.push_back(class_of_[v]);
    cost_.push_back(0);
  }

 private:
  int root(int node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }

  std::vector<int> class_of_, parent_;
  std::vector<Micros> cost_;
};

}  // namespace rockmate

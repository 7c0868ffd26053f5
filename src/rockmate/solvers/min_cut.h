// The cheapest cut between a source and a sink, by Dinic's algorithm on integer capacities.
//
// Choosing a set of nodes S with source in S and sink outside, an edge a -> b costs its capacity when a is in S and b is not.
// So "a without b costs c" is an edge a -> b of capacity c, "a needs b" one of capacity kUncut.
#pragma once

#include <cstdint>
#include <vector>

namespace rockmate {

class MinCut {
 public:
  static constexpr std::int64_t kUncut = std::int64_t{1} << 60;  // an edge that no finite cut crosses
  static constexpr int kSource = 0, kSink = 1;

  explicit MinCut(int num_nodes) : first_(num_nodes, -1) {}

  void add_edge(int from, int to, std::int64_t capacity);
  // The capacity of the cheapest cut; kUncut or more when there is no finite one. Once per object.
  std::int64_t solve();
  // After solve: is the node on the source's side? Of all cheapest cuts, the one with the fewest nodes there.
  bool in_source_side(int node) const { return level_[node] >= 0; }

 private:
  struct Edge {
    int to, next;
    std::int64_t rest;
  };

  bool find_levels();
  std::int64_t augment();

  std::vector<int> first_, level_, at_;
  std::vector<Edge> edges_;  // edge i and i ^ 1 are each other's reverse
};

}  // namespace rockmate

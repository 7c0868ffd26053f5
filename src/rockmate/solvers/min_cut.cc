#include "rockmate/solvers/min_cut.h"

#include <algorithm>

namespace rockmate {

void MinCut::add_edge(int from, int to, std::int64_t capacity) {
  if (capacity <= 0) return;
  edges_.push_back({to, first_[from], capacity});
  first_[from] = static_cast<int>(edges_.size()) - 1;
  edges_.push_back({from, first_[to], 0});
  first_[to] = static_cast<int>(edges_.size()) - 1;
}

std::int64_t MinCut::solve() {
  std::int64_t flow = 0;
  while (find_levels()) {
    at_ = first_;
    while (const std::int64_t more = augment()) {
      flow += more;
      if (flow >= kUncut) return kUncut;
    }
  }
  return flow;
}

bool MinCut::find_levels() {
  level_.assign(first_.size(), -1);
  std::vector<int> queue{kSource};
  level_[kSource] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (int e = first_[queue[i]]; e >= 0; e = edges_[e].next) {
      if (edges_[e].rest == 0 || level_[edges_[e].to] >= 0) continue;
      level_[edges_[e].to] = level_[queue[i]] + 1;
      queue.push_back(edges_[e].to);
    }
  }
  return level_[kSink] >= 0;
}

// One path of the level graph; 0 when there is none left. Without recursion: paths are as long as the graph is deep.
std::int64_t MinCut::augment() {
  std::vector<int> path;
  int node = kSource;
  while (node != kSink) {
    int& e = at_[node];
    while (e >= 0 && (edges_[e].rest == 0 || level_[edges_[e].to] != level_[node] + 1)) e = edges_[e].next;
    if (e >= 0) {
      path.push_back(e);
      node = edges_[e].to;
      continue;
    }
    if (path.empty()) return 0;
    node = edges_[path.back() ^ 1].to;
    at_[node] = edges_[path.back()].next;
    path.pop_back();
  }
  std::int64_t most = kUncut;
  for (int e : path) most = std::min(most, edges_[e].rest);
  for (int e : path) {
    edges_[e].rest -= most;
    edges_[e ^ 1].rest += most;
  }
  return most;
}

}  // namespace rockmate

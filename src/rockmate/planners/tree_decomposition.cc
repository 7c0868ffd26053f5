#include "rockmate/planners/tree_decomposition.h"

#include <algorithm>
#include <set>

namespace rockmate {
namespace {

std::vector<std::set<OpId>> neighbours(const TrainingGraph& graph) {
  std::vector<std::set<OpId>> result(graph.num_ops());
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (ValueId v : graph.ops[op].inputs) {
      const OpId producer = graph.values[v].producer;
      if (producer == kNone) continue;
      result[op].insert(producer);
      result[producer].insert(op);
    }
  }
  return result;
}

// The bag of the part whose removal leaves the smallest largest rest. `part` lists its bags, any first; edges of T are
// `joined`.
OpId balanced_separator(const std::vector<OpId>& part, const std::vector<std::vector<OpId>>& joined,
                        const std::vector<char>& taken, std::vector<int>& below) {
  // Depth first from part[0]; below[bag] counts the bags of its subtree.
  std::vector<std::pair<OpId, OpId>> order{{part[0], kNone}};
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (OpId next : joined[order[i].first]) {
      if (next != order[i].second && !taken[next]) order.emplace_back(next, order[i].first);
    }
  }
  for (const auto& [bag, from] : order) below[bag] = 1;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (it->second != kNone) below[it->second] += below[it->first];
  }
  const int size = static_cast<int>(order.size());
  OpId best = part[0];
  int best_rest = size;
  for (const auto& [bag, from] : order) {
    int rest = size - below[bag];
    for (OpId next : joined[bag]) {
      if (next != from && !taken[next]) rest = std::max(rest, below[next]);
    }
    if (rest < best_rest) {
      best = bag;
      best_rest = rest;
    }
  }
  return best;
}

}  // namespace

int TreeDecomposition::width() const {
  std::size_t largest = 1;
  for (const auto& bag : bags) largest = std::max(largest, bag.size());
  return static_cast<int>(largest) - 1;
}

TreeDecomposition min_degree_decomposition(const TrainingGraph& graph) {
  std::vector<std::set<OpId>> near = neighbours(graph);
  std::set<std::pair<std::size_t, OpId>> queue;
  for (OpId op = 0; op < graph.num_ops(); ++op) queue.emplace(near[op].size(), op);
  TreeDecomposition result;
  result.bags.resize(graph.num_ops());
  result.parent.assign(graph.num_ops(), kNone);
  std::vector<int> turn(graph.num_ops(), 0);
  for (int now = 0; !queue.empty(); ++now) {
    const OpId op = queue.begin()->second;
    queue.erase(queue.begin());
    turn[op] = now;
    result.bags[op].assign(near[op].begin(), near[op].end());
    for (OpId a : result.bags[op]) {
      queue.erase({near[a].size(), a});
      near[a].erase(op);
      for (OpId b : result.bags[op]) {
        if (a != b) near[a].insert(b);
      }
      queue.emplace(near[a].size(), a);
    }
  }
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (OpId other : result.bags[op]) {
      if (result.parent[op] == kNone || turn[other] < turn[result.parent[op]]) result.parent[op] = other;
    }
    result.bags[op].push_back(op);
  }
  return result;
}

OpId SeparatorTree::part_of(OpId op, OpId above) const {
  OpId bag = op;
  while (bag != kNone && parent[bag] != above) bag = parent[bag];
  return bag;
}

SeparatorTree divide(const TreeDecomposition& decomposition) {
  const auto n = static_cast<OpId>(decomposition.bags.size());
  std::vector<std::vector<OpId>> joined(n);
  OpId root = kNone;  // several roots (parts of the graph that nothing joins) hang on the first one
  for (OpId bag = 0; bag < n; ++bag) {
    OpId up = decomposition.parent[bag];
    if (up == kNone && root == kNone) {
      root = bag;
      continue;
    }
    if (up == kNone) up = root;
    joined[bag].push_back(up);
    joined[up].push_back(bag);
  }
  SeparatorTree tree;
  tree.parent.assign(n, kNone);
  tree.depth.assign(n, 0);
  std::vector<char> taken(n, 0);
  std::vector<int> below(n, 0);
  struct Part {
    OpId any, above;
  };
  std::vector<Part> parts;
  if (n > 0) parts.push_back({root, kNone});
  while (!parts.empty()) {
    const Part part = parts.back();
    parts.pop_back();
    const OpId separator = balanced_separator({part.any}, joined, taken, below);
    tree.parent[separator] = part.above;
    tree.depth[separator] = part.above == kNone ? 0 : tree.depth[part.above] + 1;
    taken[separator] = 1;
    for (OpId next : joined[separator]) {
      if (!taken[next]) parts.push_back({next, separator});
    }
  }
  return tree;
}

}  // namespace rockmate

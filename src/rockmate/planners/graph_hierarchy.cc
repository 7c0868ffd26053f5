#include "rockmate/planners/graph_hierarchy.h"

#include <algorithm>
#include <limits>

namespace rockmate {
namespace {

constexpr int kLeastLeaf = 6, kMostLeaf = 18;  // forward ops
constexpr int kLeastChildren = 3, kMostChildren = 6;

// Ends of consecutive groups of `least` to `most` of count items, with the least sum of price[end] over the inner ends. One
// group when there are too few items to divide.
std::vector<int> cheapest_groups(int count, int least, int most, const std::vector<double>& price) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  std::vector<double> best(count + 1, kFar);
  std::vector<int> from(count + 1, 0);
  best[0] = 0;
  for (int end = 1; end <= count; ++end) {
    for (int begin = std::max(0, end - most); begin <= end - least; ++begin) {
      const double cost = best[begin] + (end < count ? price[end] : 0);
      if (cost < best[end]) {
        best[end] = cost;
        from[end] = begin;
      }
    }
  }
  if (count == 0 || best[count] == kFar) return {count};
  std::vector<int> ends;
  for (int end = count; end > 0; end = from[end]) ends.push_back(end);
  return {ends.rbegin(), ends.rend()};
}

class Builder {
 public:
  explicit Builder(const TrainingGraph& graph)
      : graph_(graph), num_forward_(num_forward_ops(graph)), readers_(readers_of(graph)) {}

  GraphHierarchy build() {
    make_leaves();
    assign_backward();
    pin_crossing();
    count_gradients();
    group();
    charge_crossing();
    return std::move(result_);
  }

 private:
  bool is_forward_value(ValueId v) const {
    return graph_.values[v].producer != kNone && graph_.values[v].producer < num_forward_;
  }

  // Bytes read by forward ops on both sides, by the op that begins the right side.
  std::vector<double> crossing_prices() const {
    std::vector<double> price(num_forward_ + 2, 0);
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      if (!is_forward_value(v)) continue;
      const auto& r = readers_[v];
      const auto last = std::lower_bound(r.begin(), r.end(), num_forward_);
      if (last == r.begin()) continue;
      price[graph_.values[v].producer + 1] += static_cast<double>(charged_bytes(graph_.values[v]));
      price[*std::prev(last) + 1] -= static_cast<double>(charged_bytes(graph_.values[v]));
    }
    for (OpId op = 1; op <= num_forward_; ++op) price[op] += price[op - 1];
    return price;
  }

  void make_leaves() {
    Chain& chain = result_.leaves;
    chain.block_of.assign(graph_.num_ops(), 0);
    const std::vector<double> price = crossing_prices();
    Block block;
    for (int end : cheapest_groups(num_forward_, kLeastLeaf, kMostLeaf, price)) {
      block.end = end;
      leaf_price_.push_back(price[end]);
      for (OpId op = block.begin; op < end; ++op) chain.block_of[op] = static_cast<int>(chain.blocks.size());
      chain.blocks.push_back(block);
      block = {.begin = end, .end = 0, .backward = {}, .input = kNone, .output = kNone};
    }
  }

  bool crosses_forward(ValueId v) const {
    const auto& block_of = result_.leaves.block_of;
    return std::any_of(readers_[v].begin(), readers_[v].end(), [&](OpId reader) {
      return reader < num_forward_ && block_of[reader] != block_of[graph_.values[v].producer];
    });
  }

  void assign_backward() {
    auto& chain = result_.leaves;
    const int last = static_cast<int>(chain.blocks.size()) - 1;
    int random_limit = last;
    for (OpId op = num_forward_; op < graph_.num_ops(); ++op) {
      int block = graph_.ops[op].is_random ? random_limit : last;
      for (ValueId v : graph_.ops[op].inputs) {
        const OpId producer = graph_.values[v].producer;
        if (producer == kNone || (producer < num_forward_ && crosses_forward(v))) continue;
        block = std::min(block, chain.block_of[producer]);
      }
      chain.block_of[op] = block;
      if (graph_.ops[op].is_random) random_limit = block;
      chain.blocks[block].backward.push_back(op);
    }
  }

  void pin_crossing() {
    auto& chain = result_.leaves;
    chain.pinned.assign(graph_.num_values(), false);
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      if (!is_forward_value(v)) continue;
      const Value& value = graph_.values[v];
      const auto elsewhere = [&](OpId reader) { return chain.block_of[reader] != chain.block_of[value.producer]; };
      const bool once = !graph_.ops[value.producer].recomputable && !readers_[v].empty();
      chain.pinned[v] =
          value.retention != Retention::kUntilLastUse || once || std::any_of(readers_[v].begin(), readers_[v].end(), elsewhere);
    }
  }

  void count_gradients() {
    auto& chain = result_.leaves;
    const int count = static_cast<int>(chain.blocks.size());
    std::vector<Bytes> change(count + 2, 0);
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      const Value& value = graph_.values[v];
      if (is_forward_value(v) || charged_bytes(value) == 0) continue;
      int lowest = value.retention == Retention::kUntilStepEnd ? -1 : count;
      for (OpId reader : readers_[v]) lowest = std::min(lowest, chain.block_of[reader]);
      const int made = value.producer == kNone ? count : chain.block_of[value.producer];
      if (lowest >= made) continue;
      change[lowest + 1] += value.bytes;
      change[made + 1] -= value.bytes;
    }
    Bytes alive = 0;
    for (int k = 0; k <= count; ++k) chain.gradient_bytes.push_back(alive += change[k]);
    chain.pinned_bytes_at.assign(count, 0);
  }

  void group() {
    auto& nodes = result_.nodes;
    std::vector<int> level;
    for (int k = 0; k < static_cast<int>(result_.leaves.blocks.size()); ++k) {
      nodes.push_back({.first_leaf = k, .end_leaf = k + 1, .children = {}, .crossing_bytes = {}});
      level.push_back(k);
    }
    do {
      std::vector<double> price(level.size() + 1, 0);
      for (std::size_t i = 0; i < level.size(); ++i) price[i + 1] = leaf_price_[nodes[level[i]].end_leaf - 1];
      const int count = static_cast<int>(level.size());
      std::vector<int> ends = cheapest_groups(count, kLeastChildren, kMostChildren, price);
      if (count <= kMostChildren) ends = {count};
      std::vector<int> next;
      int begin = 0;
      for (int end : ends) {
        GraphHierarchy::Node node;
        node.children.assign(level.begin() + begin, level.begin() + end);
        node.first_leaf = nodes[node.children.front()].first_leaf;
        node.end_leaf = nodes[node.children.back()].end_leaf;
        next.push_back(static_cast<int>(nodes.size()));
        nodes.push_back(std::move(node));
        begin = end;
      }
      level = std::move(next);
    } while (level.size() > 1);
  }

  // Each pinned value is held by the smallest node that holds its producer and all its readers.
  void charge_crossing() {
    auto& nodes = result_.nodes;
    std::vector<int> parent(nodes.size(), kNone);
    for (int n = 0; n < static_cast<int>(nodes.size()); ++n) {
      nodes[n].crossing_bytes.assign(nodes[n].children.size(), 0);
      for (int child : nodes[n].children) parent[child] = n;
    }
    const auto& chain = result_.leaves;
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      if (!chain.pinned[v]) continue;
      const Value& value = graph_.values[v];
      const int made = chain.block_of[value.producer];
      int low = made, high = made;
      for (OpId reader : readers_[v]) {
        low = std::min(low, chain.block_of[reader]);
        high = std::max(high, chain.block_of[reader]);
      }
      const bool to_the_end = value.retention == Retention::kUntilStepEnd || !graph_.ops[value.producer].recomputable;
      int n = parent[made];
      const auto holds_all = [&] {
        return nodes[n].first_leaf <= low && high < nodes[n].end_leaf && (!to_the_end || parent[n] == kNone);
      };
      while (!holds_all()) n = parent[n];
      for (std::size_t i = 0; i < nodes[n].children.size(); ++i) {
        const auto& child = nodes[nodes[n].children[i]];
        if (child.end_leaf > std::min(made, low)) nodes[n].crossing_bytes[i] += charged_bytes(value);
      }
    }
  }

  const TrainingGraph& graph_;
  OpId num_forward_;
  std::vector<std::vector<OpId>> readers_;
  std::vector<double> leaf_price_;  // of cutting after each leaf
  GraphHierarchy result_;
};

}  // namespace

GraphHierarchy graph_hierarchy(const TrainingGraph& graph) { return Builder(graph).build(); }

}  // namespace rockmate

#include "rockmate/planners/lower_sets.h"

#include <algorithm>
#include <bit>
#include <set>

namespace rockmate {
namespace {

std::vector<std::vector<OpId>> predecessors(const TrainingGraph& graph) {
  std::vector<std::vector<OpId>> before(num_forward_ops(graph));
  for (std::size_t op = 0; op < before.size(); ++op) {
    for (ValueId v : graph.ops[op].inputs) {
      if (graph.values[v].producer != kNone) before[op].push_back(graph.values[v].producer);
    }
  }
  return before;
}

void sort_by_size(std::vector<OpSet>& sets) {
  std::vector<std::pair<int, std::size_t>> order;
  for (std::size_t i = 0; i < sets.size(); ++i) order.emplace_back(sets[i].size(), i);
  std::sort(order.begin(), order.end());
  std::vector<OpSet> sorted;
  for (const auto& [size, i] : order) sorted.push_back(std::move(sets[i]));
  sets = std::move(sorted);
}

}  // namespace

bool OpSet::within(const OpSet& other) const {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if ((words_[i] & ~other.words_[i]) != 0) return false;
  }
  return true;
}

int OpSet::size() const {
  int size = 0;
  for (std::uint64_t word : words_) size += std::popcount(word);
  return size;
}

std::vector<OpSet> all_lower_sets(const TrainingGraph& graph, std::size_t limit) {
  const auto before = predecessors(graph);
  const OpId count = static_cast<OpId>(before.size());
  std::set<OpSet> known{OpSet(count)};
  std::vector<OpSet> sets{OpSet(count)};
  for (std::size_t at = 0; at < sets.size(); ++at) {
    for (OpId op = 0; op < count; ++op) {
      const bool ready = std::all_of(before[op].begin(), before[op].end(), [&](OpId b) { return sets[at].has(b); });
      if (!ready || sets[at].has(op)) continue;
      OpSet larger = sets[at];
      larger.add(op);
      if (!known.insert(larger).second) continue;
      if (sets.size() == limit) return {};
      sets.push_back(std::move(larger));
    }
  }
  sort_by_size(sets);
  return sets;
}

std::vector<OpSet> closures_of_ops(const TrainingGraph& graph) {
  const auto before = predecessors(graph);
  const OpId count = static_cast<OpId>(before.size());
  std::vector<OpSet> closure;
  OpSet all(count);
  for (OpId op = 0; op < count; ++op) {
    OpSet& set = closure.emplace_back(count);
    set.add(op);
    all.add(op);
    for (OpId b : before[op]) set.add(closure[b]);
  }
  std::set<OpSet> different(closure.begin(), closure.end());
  different.insert(OpSet(count));
  different.insert(all);
  std::vector<OpSet> sets(different.begin(), different.end());
  sort_by_size(sets);
  return sets;
}

}  // namespace rockmate

// Lower sets of the forward pass: sets of forward ops that hold, with each op, all ops that it depends on.
//
//        b           lower sets of the diamond: {} {a} {a b} {a c} {a b c} {a b c d};
//      /   \         closures of single ops: {a} {a b} {a c} {a b c d}
//    a       d
//      \   /
//        c
#pragma once

#include <cstdint>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

class OpSet {
 public:
  explicit OpSet(OpId num_ops) : words_((num_ops + 63) / 64, 0) {}

  bool has(OpId op) const { return (words_[op / 64] >> (op % 64) & 1) != 0; }
  void add(OpId op) { words_[op / 64] |= std::uint64_t{1} << (op % 64); }
  void add(const OpSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  bool within(const OpSet& other) const;
  int size() const;
  const std::vector<std::uint64_t>& words() const { return words_; }
  auto operator<=>(const OpSet&) const = default;

 private:
  std::vector<std::uint64_t> words_;
};

// All lower sets, the empty one first and larger ones after smaller ones; nothing when there are more than `limit`.
std::vector<OpSet> all_lower_sets(const TrainingGraph& graph, std::size_t limit);

// The empty set, the closure of each single op, and all ops; larger ones after smaller ones, each once.
std::vector<OpSet> closures_of_ops(const TrainingGraph& graph);

}  // namespace rockmate

// Bytes over a line of slots: "add to a range", "the most in a range" and "where is the most", each in O(log slots).
//
// The segment tree of FastSA (Killamsetty et al., NeurIPS 2023), bottom-up and without recursion: node i covers those of 2 i
// and 2 i + 1; what was added to all of a node's range stays in added_[i] and is part of most_[i].
#pragma once

#include <algorithm>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

class SlotMemory {
 public:
  explicit SlotMemory(int slots) : SlotMemory(std::vector<Bytes>(static_cast<std::size_t>(slots), 0)) {}

  // Begins with these bytes, one entry for each slot.
  explicit SlotMemory(const std::vector<Bytes>& bytes) {
    while (leaves_ < static_cast<int>(bytes.size())) leaves_ *= 2;
    most_.assign(2 * static_cast<std::size_t>(leaves_), 0);
    added_.assign(most_.size(), 0);
    std::copy(bytes.begin(), bytes.end(), most_.begin() + leaves_);
    for (int node = leaves_ - 1; node > 0; --node) most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
  }

  // To slots first .. last, both included; nothing when first > last.
  void add(int first, int last, Bytes bytes) {
    if (first > last || bytes == 0) return;
    int left = first + leaves_, right = last + leaves_ + 1;
    for (; left < right; left >>= 1, right >>= 1) {
      if (left & 1) raise(left++, bytes);
      if (right & 1) raise(--right, bytes);
    }
    pull_up(first + leaves_);
    pull_up(last + leaves_);
  }

  // 0 when first > last.
  Bytes most(int first, int last) const {
    if (first > last) return 0;
    int left = first + leaves_, right = last + leaves_;
    Bytes most_left = most_[left], most_right = most_[right];
    while (left >> 1 != right >> 1) {
      if ((left & 1) == 0) most_left = std::max(most_left, most_[left ^ 1]);
      if ((right & 1) != 0) most_right = std::max(most_right, most_[right ^ 1]);
      left >>= 1;
      right >>= 1;
      most_left += added_[left];
      most_right += added_[right];
    }
    Bytes result = std::max(most_left, most_right);
    while (left > 1) {
      left >>= 1;
      result += added_[left];
    }
    return result;
  }

  Bytes most() const { return most_[1]; }
  // The first slot that holds the most.
  int where() const {
    int node = 1;
    while (node < leaves_) node = 2 * node + (most_[2 * node] >= most_[2 * node + 1] ? 0 : 1);
    return node - leaves_;
  }

 private:
  void raise(int node, Bytes bytes) {
    most_[node] += bytes;
    if (node < leaves_) added_[node] += bytes;
  }

  void pull_up(int node) {
    while (node > 1) {
      node >>= 1;
      most_[node] = std::max(most_[2 * node], most_[2 * node + 1]) + added_[node];
    }
  }

  int leaves_ = 1;
  std::vector<Bytes> most_, added_;
};

}  // namespace rockmate

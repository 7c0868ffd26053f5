// Numbers on a line with "add to a range" and "largest in a range", both in O(log n).
#pragma once

#include <algorithm>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

class RangeMax {
 public:
  explicit RangeMax(const std::vector<Bytes>& numbers) {
    while (leaves_ < static_cast<int>(numbers.size())) leaves_ *= 2;
    largest_.assign(2 * leaves_, 0);
    pending_.assign(2 * leaves_, 0);
    std::copy(numbers.begin(), numbers.end(), largest_.begin() + leaves_);
    for (int node = leaves_ - 1; node > 0; --node) largest_[node] = std::max(largest_[2 * node], largest_[2 * node + 1]);
  }

  void add(int begin, int end, Bytes bytes) { add(1, 0, leaves_, begin, end, bytes); }
  // 0 for an empty range.
  Bytes max(int begin, int end) const { return begin < end ? max(1, 0, leaves_, begin, end) : 0; }

 private:
  // largest_[node] counts what is pending at the node and below, not above.
  void add(int node, int from, int to, int begin, int end, Bytes bytes) {
    if (end <= from || to <= begin) return;
    if (begin <= from && to <= end) {
      largest_[node] += bytes;
      pending_[node] += bytes;
      return;
    }
    const int middle = (from + to) / 2;
    add(2 * node, from, middle, begin, end, bytes);
    add(2 * node + 1, middle, to, begin, end, bytes);
    largest_[node] = std::max(largest_[2 * node], largest_[2 * node + 1]) + pending_[node];
  }

  Bytes max(int node, int from, int to, int begin, int end) const {
    if (end <= from || to <= begin) return 0;
    if (begin <= from && to <= end) return largest_[node];
    const int middle = (from + to) / 2;
    return std::max(max(2 * node, from, middle, begin, end), max(2 * node + 1, middle, to, begin, end)) + pending_[node];
  }

  int leaves_ = 1;
  std::vector<Bytes> largest_, pending_;
};

}  // namespace rockmate

#include "rockmate/partition/cuts.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <unordered_map>

namespace rockmate {
namespace {

// Forward ops that read each value: how many, and the last.
struct ForwardReads {
  std::vector<int> count;
  std::vector<OpId> last;

  ForwardReads(const TrainingGraph& graph, OpId num_forward) : count(graph.num_values(), 0), last(graph.num_values(), kNone) {
    for (OpId op = 0; op < num_forward; ++op) {
      for (ValueId v : graph.ops[op].inputs) {
        ++count[v];
        last[v] = op;
      }
    }
  }
};

// Positions of block boundaries among the cuts, as indices into `cuts`, and the sizes of what lies between.
class Grouping {
 public:
  Grouping(const TrainingGraph& graph, const std::vector<Cut>& cuts, int min_ops)
      : graph_(graph), cuts_(cuts), min_ops_(min_ops), num_forward_(num_forward_ops(graph)), weight_(num_forward_ + 1, 0) {
    for (OpId op = 0; op < num_forward_; ++op) {
      Bytes written = 0;
      for (ValueId v : graph.ops[op].outputs) written += charged_bytes(graph.values[v]);
      weight_[op + 1] = weight_[op] + (written > 0 ? 1 : 0);
    }
  }

  std::vector<Cut> run() {
    split_at_forks();
    split_at_joins();
    split_plain_segments();
    join_tiny_segments();
    drop_tiny_ends();
    std::vector<Cut> kept;
    for (int i : chosen_) kept.push_back(cuts_[i]);
    return kept;
  }

 private:
  OpId begin_of(int cut) const { return cut < 0 ? 0 : cuts_[cut].after + 1; }
  OpId end_of(int cut) const { return cut == num_cuts() ? num_forward_ : cuts_[cut].after + 1; }
  int num_cuts() const { return static_cast<int>(cuts_.size()); }
  // Ops that write memory between two cuts (-1: start of the pass, num_cuts(): its end).
  int size(int from, int to) const { return weight_[end_of(to)] - weight_[begin_of(from)]; }

  template <typename Visit>
  void for_each_segment(Visit visit) {
    std::vector<int> ends = chosen_;
    ends.push_back(num_cuts());
    int from = -1;
    for (int to : ends) {
      visit(from, to);
      from = to;
    }
  }

  void add(const std::vector<int>& more) {
    chosen_.insert(chosen_.end(), more.begin(), more.end());
    std::sort(chosen_.begin(), chosen_.end());
  }

  void split_at_forks() {
    for (int i = 0; i < num_cuts(); ++i) {
      if (cuts_[i].is_fork) chosen_.push_back(i);
    }
  }

  void split_at_joins() {
    std::vector<int> more;
    for_each_segment([&](int from, int to) {
      for (int i = from + 1; i < to; ++i) {
        if (!cuts_[i].is_join || size(from, i) < min_ops_ || size(i, to) < min_ops_ - 2) continue;
        more.push_back(i);
        from = i;
      }
    });
    add(more);
  }

  // Pieces of at least `length` ops each, cut wherever that many have gone by.
  std::vector<int> pieces(int from, int to, int length) const {
    std::vector<int> result;
    for (int i = from + 1; i < to; ++i) {
      const int start = result.empty() ? from : result.back();
      if (size(start, i) >= length && size(i, to) >= min_ops_ / 2) result.push_back(i);
    }
    return result;
  }

  std::size_t num_different(int from, int to, const std::vector<int>& inner) const {
    std::set<std::string> different;
    int start = from;
    for (std::size_t i = 0; i <= inner.size(); ++i) {
      const int end = i < inner.size() ? inner[i] : to;
      std::string text;
      for (OpId op = begin_of(start); op < end_of(end); ++op)
        text.append(graph_.ops[op].signature).append(graph_.ops[op].target).append("|");
      different.insert(std::move(text));
      start = end;
    }
    return different.size();
  }

  void split_plain_segments() {
    std::vector<int> more;
    for_each_segment([&](int from, int to) {
      if (to - from < 2 || size(from, to) <= 2 * min_ops_) return;
      std::size_t fewest = std::numeric_limits<std::size_t>::max();
      std::vector<int> best;
      for (int length = min_ops_; length <= 2 * min_ops_; ++length) {
        std::vector<int> inner = pieces(from, to, length);
        const std::size_t different = num_different(from, to, inner);
        if (different < fewest && !inner.empty()) {
          fewest = different;
          best = std::move(inner);
        }
      }
      more.insert(more.end(), best.begin(), best.end());
    });
    add(more);
  }

  // Drops the boundary between two neighbours that are both tiny.
  void join_tiny_segments() {
    std::vector<int> kept;
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      const int from = kept.empty() ? -1 : kept.back();
      const int next = i + 1 < chosen_.size() ? chosen_[i + 1] : num_cuts();
      if (size(from, chosen_[i]) < min_ops_ && size(chosen_[i], next) < min_ops_) continue;
      if (size(from, chosen_[i]) > 0) kept.push_back(chosen_[i]);
    }
    chosen_ = std::move(kept);
  }

  // One or two ops at either end are no block.
  void drop_tiny_ends() {
    const int least = min_ops_ / 2;
    while (!chosen_.empty() && size(-1, chosen_.front()) < least) chosen_.erase(chosen_.begin());
    while (!chosen_.empty() && size(chosen_.back(), num_cuts()) < least) chosen_.pop_back();
  }

  const TrainingGraph& graph_;
  const std::vector<Cut>& cuts_;
  int min_ops_;
  OpId num_forward_;
  std::vector<int> weight_;  // ops that write memory before each op
  std::vector<int> chosen_;
};

}  // namespace

std::vector<Cut> find_cuts(const TrainingGraph& graph, const std::vector<bool>& pinned) {
  const OpId num_forward = num_forward_ops(graph);
  const ForwardReads reads(graph, num_forward);
  const auto crosses = [&](ValueId v) { return !pinned[v] && charged_bytes(graph.values[v]) > 0; };
  std::vector<int> count(num_forward + 1, 0);
  std::vector<std::int64_t> id_sum(num_forward + 1, 0);  // of a single value: its id
  for (OpId op = 0; op < num_forward; ++op) {
    for (ValueId v : graph.ops[op].outputs) {
      if (!crosses(v) || reads.last[v] == kNone) continue;
      ++count[op];
      --count[reads.last[v]];
      id_sum[op] += v;
      id_sum[reads.last[v]] -= v;
    }
  }
  std::vector<Cut> cuts;
  std::int64_t alive = 0, ids = 0;
  for (OpId op = 0; op + 1 < num_forward; ++op) {
    alive += count[op];
    ids += id_sum[op];
    if (alive > 1) continue;
    Cut cut{.after = op};
    if (alive == 1) {
      cut.value = static_cast<ValueId>(ids);
      if (!cuts.empty() && cuts.back().value == cut.value) continue;
      const auto& inputs = graph.ops[graph.values[cut.value].producer].inputs;
      cut.is_fork = reads.count[cut.value] > 1;
      cut.is_join = std::count_if(inputs.begin(), inputs.end(), crosses) > 1;
    }
    cuts.push_back(cut);
  }
  return cuts;
}

std::vector<Cut> group_cuts(const TrainingGraph& graph, const std::vector<Cut>& cuts, int min_ops) {
  return Grouping(graph, cuts, min_ops).run();
}

}  // namespace rockmate

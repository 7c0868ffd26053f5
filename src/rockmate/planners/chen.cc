#include "rockmate/planners/chen.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "rockmate/partition/chain.h"
#include "rockmate/partition/cuts.h"
#include "rockmate/planners/checkpoints.h"
#include "rockmate/planners/trials.h"
#include "rockmate/schedule/schedule.h"

namespace rockmate {
namespace {

constexpr int kSegmentBudgets = 96;  // values of b that chen-sqrt tries for each C
constexpr int kLeafBudgets = 12;     // values of b that chen-recursive tries for each C and k
constexpr int kMostBorders = 4;      // values of k
constexpr int kManyOps = 4000;       // above, fewer values are tried

std::vector<Bytes> output_bytes_of(const TrainingGraph& graph) {
  std::vector<Bytes> bytes(num_forward_ops(graph), 0);
  for (std::size_t op = 0; op < bytes.size(); ++op) {
    for (ValueId v : graph.ops[op].outputs) bytes[op] += charged_bytes(graph.values[v]);
  }
  return bytes;
}

// The two sets C: where one value crosses, and everywhere.
std::vector<std::vector<OpId>> candidate_sets(const TrainingGraph& graph) {
  std::vector<std::vector<OpId>> sets;
  std::vector<OpId> cuts;
  for (const Cut& cut : find_cuts(graph, partition_chain(graph).pinned)) cuts.push_back(cut.after);
  if (!cuts.empty()) sets.push_back(std::move(cuts));
  std::vector<OpId> all(std::max<OpId>(num_forward_ops(graph) - 1, 0));
  std::iota(all.begin(), all.end(), 0);
  if (!all.empty()) sets.push_back(std::move(all));
  return sets;
}

// From whole / 2 down to whole / count, closer together where segments are many.
std::vector<Bytes> budgets_below(Bytes whole, double count, int number) {
  std::vector<Bytes> budgets;
  for (int i = 0; i < number; ++i) {
    const double share = 0.5 * std::pow(2.0 / std::max(count, 2.0), static_cast<double>(i) / (number - 1));
    const auto b = static_cast<Bytes>(static_cast<double>(whole) * share);
    if (budgets.empty() || b < budgets.back()) budgets.push_back(b);
  }
  return budgets;
}

int thinned(int number, const TrainingGraph& graph) { return graph.num_ops() > kManyOps ? std::max(number / 4, 4) : number; }

std::vector<int> segment_of(OpId num_forward, const std::vector<OpId>& begins) {
  std::vector<int> segment(num_forward, 0);
  std::size_t passed = 0;
  for (OpId op = 0; op < num_forward; ++op) {
    while (passed < begins.size() && begins[passed] <= op) ++passed;
    segment[op] = static_cast<int>(passed);
  }
  return segment;
}

// Divides an interval of segments into k + 1 parts of about equal bytes until at most b are left in each.
class EvenSplit {
 public:
  EvenSplit(const std::vector<Bytes>& bytes, int k, Bytes b) : k_(k), b_(b), before_(bytes.size() + 1, 0) {
    std::partial_sum(bytes.begin(), bytes.end(), before_.begin() + 1);
  }

  std::vector<int> operator()(int begin, int end) const {
    std::vector<int> borders;
    const Bytes whole = before_[end] - before_[begin];
    if (end - begin < 2 || whole <= b_) return borders;
    for (int part = 1; part <= k_; ++part) {
      const Bytes target = before_[begin] + whole / (k_ + 1) * part;
      const auto found = std::lower_bound(before_.begin() + begin, before_.begin() + end, target);
      const int border = std::min(static_cast<int>(found - before_.begin()), end - 1);
      if (border > begin && (borders.empty() || border > borders.back())) borders.push_back(border);
    }
    return borders;
  }

 private:
  int k_;
  Bytes b_;
  std::vector<Bytes> before_;
};

std::string note_on(const std::vector<std::vector<OpId>>& sets) {
  return sets.size() > 1 ? "segments between " + std::to_string(sets.front().size()) + " cut points, or anywhere"
                         : "no cut points: segments anywhere";
}

}  // namespace

std::vector<OpId> chen_segments(const std::vector<Bytes>& output_bytes, const std::vector<OpId>& candidates, Bytes b) {
  std::vector<OpId> begins;
  Bytes temp = 0;
  std::size_t next = 0;
  for (OpId op = 0; op < static_cast<OpId>(output_bytes.size()); ++op) {
    temp += output_bytes[op];
    while (next < candidates.size() && candidates[next] < op) ++next;
    const bool may_cut = next < candidates.size() && candidates[next] == op;
    if (!may_cut || temp <= b) continue;
    begins.push_back(op + 1);
    temp = 0;
  }
  return begins;
}

PlannerAnswer chen_sqrt(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  Trials trials(graph, budget_bytes);
  trials.add(store_all_sequence(graph));
  const std::vector<Bytes> bytes = output_bytes_of(graph);
  const Bytes whole = std::accumulate(bytes.begin(), bytes.end(), Bytes{0});
  const auto sets = candidate_sets(graph);
  std::set<std::vector<OpId>> tried;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const auto budgets = budgets_below(whole, static_cast<double>(sets[i].size() + 1), thinned(kSegmentBudgets, graph));
    for (std::size_t j = 0; j < budgets.size(); ++j) {
      if (!context.progress("segments", (static_cast<double>(i) + static_cast<double>(j) / budgets.size()) / sets.size())) {
        return std::move(trials).answer(note_on(sets));
      }
      const std::vector<OpId> begins = chen_segments(bytes, sets[i], budgets[j]);
      if (begins.empty() || !tried.insert(begins).second) continue;
      trials.add(Checkpoints(graph, segment_of(num_forward_ops(graph), begins)).flat_sequence());
    }
  }
  return std::move(trials).answer(note_on(sets));
}

PlannerAnswer chen_recursive(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  Trials trials(graph, budget_bytes);
  trials.add(store_all_sequence(graph));
  const auto sets = candidate_sets(graph);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    std::vector<OpId> begins;
    for (OpId after : sets[i]) begins.push_back(after + 1);
    const Checkpoints finest(graph, segment_of(num_forward_ops(graph), begins));
    const auto& bytes = finest.segment_bytes();
    const Bytes whole = std::accumulate(bytes.begin(), bytes.end(), Bytes{0});
    const auto budgets = budgets_below(whole, static_cast<double>(bytes.size()), thinned(kLeafBudgets, graph));
    const double steps = static_cast<double>(budgets.size()) * kMostBorders * static_cast<double>(sets.size());
    for (int k = 1; k <= kMostBorders; ++k) {
      for (std::size_t j = 0; j < budgets.size(); ++j) {
        const double done = static_cast<double>((i * kMostBorders + k - 1) * budgets.size() + j) / steps;
        if (!context.progress("recursion", done)) return std::move(trials).answer(note_on(sets));
        trials.add(finest.sequence(EvenSplit(bytes, k, budgets[j])));
      }
    }
  }
  return std::move(trials).answer(note_on(sets));
}

}  // namespace rockmate

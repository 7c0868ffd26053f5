#include "rockmate/planners/memory_budget.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rockmate/planners/trials.h"
#include "rockmate/solvers/min_cut.h"

namespace rockmate {
namespace {

constexpr int kSteps = 10'000;               // PyTorch's S: memory levels of the knapsack
constexpr std::size_t kMaxCells = 40 << 20;  // of its table; fewer levels above
constexpr Bytes kReduction = 4;              // an op whose output is this many times smaller than its inputs
constexpr double kFarther = 1.1;             // price of a value one step farther from the backward pass
constexpr int kFarthest = 100;
constexpr int kFar = 1'000'000'000;  // never reaches the backward pass
constexpr int kBudgets = 48;         // budgets tried between 0 and 1
constexpr int kFineBudgets = 16;     // and between the best of them and its neighbours

// The 0-1 knapsack for every capacity at once.
class Knapsack {
 public:
  Knapsack(const std::vector<double>& memory, const std::vector<Micros>& runtime)
      : steps_(static_cast<int>(std::min<std::size_t>(kSteps, kMaxCells / std::max<std::size_t>(memory.size(), 1)))) {
    std::vector<Micros> best(steps_ + 1, 0);
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const int size = static_cast<int>(std::min<double>(std::round(memory[i] * steps_), steps_ + 1));
      size_.push_back(size);
      std::vector<bool>& taken = taken_.emplace_back(steps_ + 1, false);
      for (int m = steps_; m >= size; --m) {
        if (best[m - size] + runtime[i] <= best[m] && size > 0) continue;
        best[m] = best[m - size] + runtime[i];
        taken[m] = true;
      }
    }
  }

  // Which items are worth most together within the share.
  std::vector<bool> chosen(double share) const {
    int m = static_cast<int>(std::round(std::clamp(share, 0.0, 1.0) * steps_));
    std::vector<bool> chosen(size_.size(), false);
    for (std::size_t i = size_.size(); i-- > 0;) {
      if (!taken_[i][m]) continue;
      chosen[i] = true;
      m -= size_[i];
    }
    return chosen;
  }

 private:
  int steps_;
  std::vector<int> size_;
  std::vector<std::vector<bool>> taken_;
};

class Partitioner {
 public:
  explicit Partitioner(const TrainingGraph& graph)
      : graph_(graph), num_forward_(num_forward_ops(graph)), readers_(readers_of(graph)), op_distance_(graph.num_ops(), 0) {
    measure_distances();
    has_flops_ = std::any_of(graph.ops.begin(), graph.ops.end(), [](const Op& op) { return op.flops > 0; });
    for (OpId op = 0; op < num_forward_; ++op) {
      if (graph.ops[op].recomputable && is_banned(graph.ops[op]) && op_distance_[op] < kFar) banned_.push_back(op);
    }
    // The knapsack keeps what comes first: of equal ops the latest, which the backward pass reads first.
    std::sort(banned_.begin(), banned_.end(),
              [&](OpId a, OpId b) { return output_bytes(a) != output_bytes(b) ? output_bytes(a) > output_bytes(b) : a > b; });
  }

  const std::vector<OpId>& banned() const { return banned_; }

  Bytes output_bytes(OpId op) const {
    Bytes bytes = 0;
    for (ValueId v : graph_.ops[op].outputs) bytes += price(v) == 0 ? 0 : graph_.values[v].bytes;
    return bytes;
  }

  Bytes saved_bytes(const std::vector<bool>& saved) const {
    Bytes bytes = 0;
    for (ValueId v = 0; v < graph_.num_values(); ++v) bytes += saved[v] && price(v) > 0 ? graph_.values[v].bytes : 0;
    return bytes;
  }

  // The values saved when the banned ops with keep[i] must not be recomputed.
  std::vector<bool> saved_values(const std::vector<bool>& keep) const {
    MinCut cut(2 + num_forward_ + graph_.num_values());
    const auto node_of = [&](ValueId v) { return 2 + num_forward_ + v; };
    for (std::size_t i = 0; i < banned_.size(); ++i) {
      if (keep[i]) cut.add_edge(MinCut::kSource, 2 + banned_[i], MinCut::kUncut);
    }
    for (OpId op = 0; op < num_forward_; ++op) {
      if (!graph_.ops[op].recomputable) cut.add_edge(MinCut::kSource, 2 + op, MinCut::kUncut);
      for (ValueId v : graph_.ops[op].outputs) {
        cut.add_edge(2 + op, node_of(v), price(v));
        bool in_backward = false;
        for (OpId reader : readers_[v]) {
          if (reader < num_forward_) cut.add_edge(node_of(v), 2 + reader, MinCut::kUncut);
          in_backward |= reader >= num_forward_;
        }
        if (in_backward) cut.add_edge(node_of(v), MinCut::kSink, MinCut::kUncut);
      }
    }
    cut.solve();
    std::vector<bool> saved(graph_.num_values(), false);
    for (OpId op = 0; op < num_forward_; ++op) {
      for (ValueId v : graph_.ops[op].outputs) saved[v] = cut.in_source_side(2 + op) && !cut.in_source_side(node_of(v));
    }
    return saved;
  }

 private:
  void measure_distances() {
    for (OpId op = num_forward_ - 1; op >= 0; --op) {
      op_distance_[op] = kFar;
      for (ValueId v : graph_.ops[op].outputs) op_distance_[op] = std::min(op_distance_[op], distance(v));
    }
  }

  // Steps from the value to the backward pass: 1 when a backward op reads it.
  int distance(ValueId v) const {
    int nearest = kFar;
    for (OpId reader : readers_[v]) nearest = std::min(nearest, 1 + op_distance_[reader]);
    return nearest;
  }

  bool is_banned(const Op& op) const {
    if (op.is_random || op.flops > 0 || !has_flops_) return true;
    Bytes read = 0, written = 0;
    for (ValueId v : op.inputs) read += graph_.values[v].bytes;
    for (ValueId v : op.outputs) written += graph_.values[v].bytes;
    return written * kReduction < read;
  }

  std::int64_t price(ValueId v) const {
    if (graph_.values[v].retention == Retention::kUntilStepEnd) return 0;
    const double weight = std::pow(kFarther, std::min(distance(v), kFarthest));
    return static_cast<std::int64_t>(static_cast<double>(charged_bytes(graph_.values[v])) * weight);
  }

  const TrainingGraph& graph_;
  OpId num_forward_;
  std::vector<std::vector<OpId>> readers_;
  std::vector<int> op_distance_;  // 0 for backward ops
  bool has_flops_ = false;
  std::vector<OpId> banned_;
};

}  // namespace

std::vector<OpId> sequence_with_saved(const TrainingGraph& graph, const std::vector<bool>& saved) {
  const OpId num_forward = num_forward_ops(graph);
  std::vector<OpId> sequence(num_forward);
  std::iota(sequence.begin(), sequence.end(), 0);
  std::vector<bool> there(graph.num_values(), true);
  for (OpId op = 0; op < num_forward; ++op) {
    for (ValueId v : graph.ops[op].outputs) {
      there[v] = saved[v] || !graph.ops[op].recomputable || graph.values[v].retention == Retention::kUntilStepEnd;
    }
  }
  std::vector<OpId> recompute, pending;
  for (OpId op = num_forward; op < graph.num_ops(); ++op) {
    recompute.clear();
    const auto need = [&](const Op& reader) {
      for (ValueId v : reader.inputs) {
        if (there[v]) continue;
        there[v] = true;
        pending.push_back(graph.values[v].producer);
      }
    };
    need(graph.ops[op]);
    while (!pending.empty()) {
      recompute.push_back(pending.back());
      pending.pop_back();
      need(graph.ops[recompute.back()]);
    }
    std::sort(recompute.begin(), recompute.end());
    recompute.erase(std::unique(recompute.begin(), recompute.end()), recompute.end());
    for (OpId again : recompute) {
      for (ValueId v : graph.ops[again].outputs) there[v] = true;
    }
    sequence.insert(sequence.end(), recompute.begin(), recompute.end());
    sequence.push_back(op);
  }
  return sequence;
}

PlannerAnswer memory_budget(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  Trials trials(graph, budget_bytes);
  trials.add(store_all_sequence(graph));
  if (trials.found()) return std::move(trials).answer();

  const Partitioner partitioner(graph);
  const auto& banned = partitioner.banned();
  const std::vector<bool> upper_end = partitioner.saved_values(std::vector<bool>(banned.size(), true));
  trials.add(sequence_with_saved(graph, upper_end));
  const double max_act_bytes = static_cast<double>(std::max<Bytes>(partitioner.saved_bytes(upper_end), 1));

  std::vector<double> memory;
  std::vector<Micros> runtime;
  for (OpId op : banned) {
    memory.push_back(static_cast<double>(partitioner.output_bytes(op)) / max_act_bytes);
    runtime.push_back(graph.ops[op].time_us);
  }
  const Knapsack knapsack(memory, runtime);
  double best_share = 0;
  const auto attempt = [&](double share) {
    const Micros before_us = trials.found() ? trials.best().time_us : -1;
    trials.add(sequence_with_saved(graph, partitioner.saved_values(knapsack.chosen(share))));
    if (trials.found() && trials.best().time_us != before_us) best_share = share;
  };
  trials.add(sequence_with_saved(graph, std::vector<bool>(graph.num_values(), false)));  // PyTorch's budget 0
  for (int i = kBudgets; i >= 0 && context.progress("knapsack", 0.8 * (kBudgets - i) / kBudgets); --i) {
    attempt(static_cast<double>(i) / kBudgets);
  }
  const double around = best_share;
  for (int i = -kFineBudgets; i <= kFineBudgets && trials.found(); ++i) {
    if (!context.progress("knapsack", 0.9 + 0.1 * i / kFineBudgets)) break;
    const double share = around + static_cast<double>(i) / (kFineBudgets * kBudgets);
    if (share > 0 && share < 1) attempt(share);
  }
  return std::move(trials).answer(std::to_string(banned.size()) + " ops that PyTorch would rather not recompute");
}

}  // namespace rockmate

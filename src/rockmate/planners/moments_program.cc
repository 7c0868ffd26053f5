#include "rockmate/planners/moments_program.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "rockmate/ilp/model.h"
#include "rockmate/planners/moments.h"
#include "rockmate/schedule/schedule.h"
#include "rockmate/solvers/sequence_memory.h"

namespace rockmate {
namespace {

constexpr int kNoVariable = -1;
constexpr OpId kMostOps = 600;
constexpr int kMoments = 6;

class Program {
 public:
  Program(const TrainingGraph& graph, Bytes budget_bytes, const std::vector<OpId>& moments) : graph_(graph) {
    const MomentMaker maker(graph);
    for (OpId d : moments) moments_.push_back(maker.make(d));
    for (const Op& op : graph.ops) plain_us_ += op.time_us;
    for (const Value& value : graph.values) largest_ = std::max(largest_, charged_bytes(value));
    held_.assign(moments_.size(), std::vector<int>(graph.num_values(), kNoVariable));
    run_.assign(moments_.size(), std::vector<int>(graph.num_ops(), kNoVariable));
    for (int j = 0; j < count(); ++j) add_reads(j);
    while (!waiting_.empty()) {
      const auto [j, op] = waiting_.front();
      waiting_.pop_front();
      for (ValueId v : graph.ops[op].inputs) add_need(j, v, j, {{run_[j][op], -1}}, 0);
    }
    for (int j = 0; j < count(); ++j) {
      std::vector<ilp::Term> terms;
      for (ValueId v = 0; v < graph.num_values(); ++v) {
        if (held_[j][v] != kNoVariable) terms.emplace_back(held_[j][v], scaled(charged_bytes(graph.values[v])));
      }
      // A little more room than there is, so that the solver's tolerances do not make the bound too high.
      model_.add_row(terms, -ilp::kInfinity, scaled(budget_bytes - moments_[j].fixed_bytes) + 1e-6);
    }
  }

  Micros bound_us() const {
    ilp::SolveOptions how;
    how.time_limit_s = 0.5;
    how.node_limit = 200;
    how.relative_gap = 1e-5;
    const ilp::Outcome outcome = ilp::solve(model_, how);
    if (outcome.status == ilp::Status::kInfeasible) return kNever;
    return std::max(0.0, outcome.bound) * (1 - 1e-5) * plain_us_ / 1000;
  }

 private:
  int count() const { return static_cast<int>(moments_.size()); }
  double scaled(Bytes bytes) const { return static_cast<double>(bytes) / static_cast<double>(largest_); }

  void add_reads(int j) {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (!moments_[j].will_run[op]) continue;
      const bool before_next = j + 1 < count() && moments_[j + 1].has_run[op];
      for (ValueId v : graph_.ops[op].inputs) add_need(j, v, before_next ? j : count() - 1, {}, 1);
    }
  }

  // k[j, v] + r[j, producer] + ... + r[last, producer] + terms >= least.
  void add_need(int j, ValueId v, int last, std::vector<ilp::Term> terms, double least) {
    if (moments_[j].at[v] != Moment::At::kOpen) return;  // held, or made by an op that must run for the first time
    terms.emplace_back(held(j, v), 1);
    const OpId producer = graph_.values[v].producer;
    for (int i = j; i <= last && producer != kNone; ++i) {
      const int variable = run(i, producer);
      if (variable != kNoVariable) terms.emplace_back(variable, 1);
    }
    model_.add_row(terms, least, ilp::kInfinity);
  }

  int held(int j, ValueId v) {
    if (held_[j][v] != kNoVariable) return held_[j][v];
    const int variable = held_[j][v] = model_.add_binary();
    const OpId producer = graph_.values[v].producer;
    if (j == 0 || moments_[j - 1].at[v] != Moment::At::kOpen) return variable;
    std::vector<ilp::Term> terms{{variable, -1}, {held(j - 1, v), 1}};
    const int made = producer == kNone ? kNoVariable : run(j - 1, producer);
    if (made != kNoVariable) terms.emplace_back(made, 1);
    model_.add_row(terms, 0, ilp::kInfinity);
    return variable;
  }

  int run(int j, OpId op) {
    const Micros price_us = moments_[j].rerun_us[op];
    if (price_us == kNever || run_[j][op] != kNoVariable) return run_[j][op];
    run_[j][op] = model_.add_continuous(0, 1, 1000 * price_us / std::max(plain_us_, 1e-9));
    waiting_.emplace_back(j, op);
    return run_[j][op];
  }

  const TrainingGraph& graph_;
  std::vector<Moment> moments_;
  Micros plain_us_ = 0;
  Bytes largest_ = 1;
  ilp::Model model_;
  std::vector<std::vector<int>> held_, run_;  // k and r, by moment
  std::deque<std::pair<int, OpId>> waiting_;  // runs whose reads are still to be added
};

}  // namespace

Micros bound_of_moments(const TrainingGraph& graph, Bytes budget_bytes, const std::vector<OpId>& moments) {
  if (graph.num_ops() > kMostOps || moments.empty()) return 0;
  return Program(graph, budget_bytes, moments).bound_us();
}

std::vector<OpId> moments_around(const TrainingGraph& graph, OpId through) {
  const OpId num_forward = num_forward_ops(graph);
  if ((through != kBoundary && through < num_forward) || graph.num_ops() > kMostOps) return {through};
  const SequenceMemory plain(graph, store_all_sequence(graph));
  const MomentMaker maker(graph);
  std::vector<OpId> ops(graph.num_ops() - num_forward);
  std::iota(ops.begin(), ops.end(), num_forward);
  std::stable_sort(ops.begin(), ops.end(), [&](OpId a, OpId b) { return plain.inside()[a] > plain.inside()[b]; });
  std::vector<OpId> chosen{through};
  std::vector<Moment> made{maker.make(through)};
  for (OpId op : ops) {
    if (static_cast<int>(chosen.size()) >= kMoments) break;
    const auto ordered = [&](const Moment& moment) { return moment.has_run[op] || moment.will_run[op]; };
    if (std::find(chosen.begin(), chosen.end(), op) != chosen.end() || !std::all_of(made.begin(), made.end(), ordered))
      continue;
    chosen.push_back(op);
    made.push_back(maker.make(op));
  }
  std::sort(chosen.begin(), chosen.end());  // kBoundary first
  return chosen;
}

}  // namespace rockmate

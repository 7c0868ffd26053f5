#include "rockmate/solvers/rk_checkmate.h"

#include <algorithm>
#include <optional>

#include "rockmate/solvers/checkmate_stages.h"

namespace rockmate {
namespace {

constexpr int kFixedZero = -1;  // a variable that can only be 0 is not made

class Program {
 public:
  Program(const BlockProblem& problem, Bytes save_bytes, Bytes peak_bytes)
      : graph_(problem.graph),
        stages_(checkmate_stages(problem)),
        num_forward_(num_forward_ops(graph_)),
        num_stages_(static_cast<int>(stages_.stages.size())),
        peak_bytes_(peak_bytes - stages_.kept_bytes) {
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      if (!stages_.managed[v]) continue;
      managed_.push_back(v);
      largest_ = std::max(largest_, graph_.values[v].bytes);
    }
    alive_.assign(graph_.num_values(), kFixedZero);
    add_recomputations();
    add_saves(problem.output, save_bytes - stages_.kept_bytes);
    for (int j = 1; j < num_stages_; ++j) add_stage(j);
  }

  CheckmateResult solve(const CheckmateOptions& options) {
    ilp::SolveOptions how;
    how.time_limit_s = options.time_limit_s;
    how.relative_gap = options.relative_gap;
    how.stop = options.stop;
    if (options.start != nullptr) how.start = start_values(*options.start);
    const ilp::Outcome outcome = ilp::solve(model_, how);
    CheckmateResult result{outcome.status, stages_.exact, {}, std::max(outcome.bound, 0.0)};
    const bool has_solution = outcome.status == ilp::Status::kOptimal || outcome.status == ilp::Status::kFeasible;
    if (!has_solution) return result;
    for (OpId op = 0; op < num_forward_; ++op) result.sequence.push_back(op);
    for (int j = 0; j < num_stages_; ++j) {
      for (OpId op = 0; op < num_forward_; ++op) {
        if (recompute_[j][op] != kFixedZero && outcome.values[recompute_[j][op]] > 0.5) result.sequence.push_back(op);
      }
      for (OpId op = stages_.stages[j].first; op < stages_.stages[j].end; ++op) result.sequence.push_back(op);
    }
    return result;
  }

 private:
  void add_recomputations() {
    recompute_.assign(num_stages_, std::vector<int>(num_forward_, kFixedZero));
    for (OpId op = 0; op < num_forward_; ++op) {
      int last = -1;
      for (ValueId v : graph_.ops[op].outputs) {
        if (stages_.managed[v]) last = std::max(last, stages_.last_needed[v]);
      }
      for (int j = 1; j <= last; ++j) recompute_[j][op] = model_.add_binary(graph_.ops[op].time_us);
    }
  }

  // S of stage 1, and the rows of what runs before it.
  void add_saves(ValueId output, Bytes save_bytes) {
    std::vector<ilp::Term> saved;
    for (ValueId v : managed_) {
      if (stages_.last_needed[v] < 1) continue;
      alive_[v] = model_.add_continuous(0, 1);
      if (v != output) saved.emplace_back(alive_[v], scaled(graph_.values[v].bytes));
    }
    model_.add_row(saved, -ilp::kInfinity, scaled(save_bytes));
    add_memory_row(stages_.stages[0].rest_bytes, {});
  }

  // Moves `alive_` from S[j, .] through the stage to S[j + 1, .], adding rows on the way.
  void add_stage(int j) {
    const CheckmateStage& stage = stages_.stages[j];
    for (OpId op = 0; op < num_forward_; ++op) {
      if (recompute_[j][op] != kFixedZero) add_recompute(j, op, stage.before_bytes);
    }
    for (ValueId v : stage.reads) must_be_alive(v, {});
    // What the next stage finds alive, and what its readers may still need.
    std::vector<int> next(graph_.num_values(), kFixedZero);
    for (ValueId v : managed_) {
      if (alive_[v] == kFixedZero || stages_.last_needed[v] <= j) continue;
      next[v] = model_.add_continuous(0, 1);
      model_.add_row({{next[v], 1}, {alive_[v], -1}}, -ilp::kInfinity, 0);
    }
    std::vector<int> during = next;
    for (ValueId v : stage.reads) during[v] = alive_[v];
    alive_ = std::move(during);
    add_memory_row(stage.first_bytes, {});
    alive_ = std::move(next);
    add_memory_row(stage.rest_bytes, {});
  }

  // A value keeps one variable from one possible use to the next; here each value that the op reads or writes gets a new one.
  void add_recompute(int j, OpId op, Bytes gradient_bytes) {
    const int computed = recompute_[j][op];
    Bytes unmanaged = graph_.ops[op].workspace_bytes;
    std::vector<ValueId> touched;
    for (ValueId v : graph_.ops[op].inputs) {
      if (!stages_.managed[v]) continue;
      must_be_alive(v, ilp::Term{computed, -1});
      touched.push_back(v);
    }
    for (ValueId v : graph_.ops[op].outputs) {
      if (!stages_.managed[v]) {
        unmanaged += charged_bytes(graph_.values[v]);
        continue;
      }
      const int inside = model_.add_continuous(0, 1);
      std::vector<ilp::Term> from{{inside, 1}, {computed, -1}};
      if (alive_[v] != kFixedZero) from.emplace_back(alive_[v], -1);
      model_.add_row(from, -ilp::kInfinity, 0);
      model_.add_row({{inside, 1}, {computed, -1}}, 0, ilp::kInfinity);
      alive_[v] = inside;
      touched.push_back(v);
    }
    add_memory_row(gradient_bytes, {computed, scaled(unmanaged)});
    for (ValueId v : touched) {
      if (alive_[v] == kFixedZero) continue;
      const int after = model_.add_continuous(0, 1);
      model_.add_row({{after, 1}, {alive_[v], -1}}, -ilp::kInfinity, 0);
      alive_[v] = after;
    }
  }

  // The value's variable is 1, or at least the variable of `when` (given with coefficient -1).
  void must_be_alive(ValueId v, std::optional<ilp::Term> when) {
    std::vector<ilp::Term> terms;
    if (alive_[v] != kFixedZero) terms.emplace_back(alive_[v], 1);
    if (when) terms.push_back(*when);
    model_.add_row(terms, when ? 0 : 1, ilp::kInfinity);
  }

  void add_memory_row(Bytes fixed_bytes, ilp::Term extra) {
    std::vector<ilp::Term> terms;
    for (ValueId v : managed_) {
      if (alive_[v] != kFixedZero) terms.emplace_back(alive_[v], scaled(graph_.values[v].bytes));
    }
    if (extra.second > 0) terms.push_back(extra);
    model_.add_row(terms, -ilp::kInfinity, scaled(peak_bytes_ - fixed_bytes));
  }

  // Bytes as a share of the largest value: numbers that the solver's tolerances are made for.
  double scaled(Bytes bytes) const { return static_cast<double>(bytes) / static_cast<double>(std::max<Bytes>(largest_, 1)); }

  std::vector<ilp::Term> start_values(const std::vector<OpId>& sequence) const {
    std::vector<std::vector<bool>> computed(num_stages_, std::vector<bool>(num_forward_, false));
    int j = 0;
    std::vector<OpId> waiting;
    for (std::size_t i = static_cast<std::size_t>(num_forward_); i < sequence.size(); ++i) {
      if (sequence[i] < num_forward_) {
        waiting.push_back(sequence[i]);
      } else if (j + 1 < num_stages_ && sequence[i] == stages_.stages[j + 1].first) {
        ++j;
        for (OpId op : waiting) computed[j][op] = true;
        waiting.clear();
      }
    }
    std::vector<ilp::Term> start;
    for (int stage = 1; stage < num_stages_; ++stage) {
      for (OpId op = 0; op < num_forward_; ++op) {
        if (recompute_[stage][op] != kFixedZero) start.emplace_back(recompute_[stage][op], computed[stage][op] ? 1.0 : 0.0);
      }
    }
    return start;
  }

  const TrainingGraph& graph_;
  CheckmateStages stages_;
  OpId num_forward_;
  int num_stages_;
  Bytes peak_bytes_;
  Bytes largest_ = 0;
  std::vector<ValueId> managed_;
  ilp::Model model_;
  std::vector<std::vector<int>> recompute_;  // R[stage][op]
  std::vector<int> alive_;                   // by value: the variable that says whether it is alive at the current position
};

}  // namespace

CheckmateResult rk_checkmate(const BlockProblem& problem, Bytes save_bytes, Bytes peak_bytes, const CheckmateOptions& options) {
  return Program(problem, save_bytes, peak_bytes).solve(options);
}

}  // namespace rockmate

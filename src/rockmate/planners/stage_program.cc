#include "rockmate/planners/stage_program.h"

#include <algorithm>
#include <cassert>

namespace rockmate {
namespace {

constexpr int kNothing = -1;  // no variable: never held, never run

}  // namespace

StageProgram::StageProgram(const TrainingGraph& graph, Bytes budget_bytes, const StageProgramOptions& options)
    : graph_(graph),
      budget_bytes_(budget_bytes),
      options_(options),
      num_forward_(num_forward_ops(graph)),
      held_(graph.num_values(), kNothing),
      running_sum_(kNothing) {
  find_managed();
  find_last_needed();
  find_fixed_bytes();
  add_runs();
  if (too_large_) return;
  add_replays();
  kept_.resize(graph.num_ops());
  for (OpId t = 0; t < graph.num_ops() && !infeasible_; ++t) {
    add_stage(t);
    too_large_ = model_.num_nonzeros() > options.most_nonzeros;
    if (too_large_) return;
  }
}

void StageProgram::find_managed() {
  managed_.assign(graph_.num_values(), 0);
  for (ValueId v = 0; v < graph_.num_values(); ++v) {
    const Value& value = graph_.values[v];
    largest_ = std::max(largest_, charged_bytes(value));
    managed_[v] = value.producer != kNone && charged_bytes(value) > options_.negligible_bytes &&
                  value.retention != Retention::kUntilStepEnd;
  }
}

void StageProgram::find_last_needed() {
  last_needed_.assign(graph_.num_values(), kNone);
  for (OpId op = graph_.num_ops() - 1; op >= 0; --op) {
    OpId last = op;
    if (may_repeat(graph_, op)) {
      for (ValueId v : graph_.ops[op].outputs) last = std::max(last, last_needed_[v]);
    }
    for (ValueId v : graph_.ops[op].inputs) last_needed_[v] = std::max(last_needed_[v], last);
  }
  for (ValueId v = 0; v < graph_.num_values(); ++v) {
    if (graph_.values[v].retention != Retention::kUntilForwardEnd) continue;
    last_needed_[v] = std::max(last_needed_[v], num_forward_ - 1);
  }
}

void StageProgram::find_fixed_bytes() {
  const OpId n = graph_.num_ops();
  std::vector<Bytes> change(n + 2, 0);
  for (ValueId v = 0; v < graph_.num_values(); ++v) {
    const Value& value = graph_.values[v];
    if (is_resident(value.kind) || managed_[v] || charged_bytes(value) == 0) continue;
    const bool leaves = value.retention == Retention::kUntilStepEnd;
    const OpId begin = value.producer == kNone ? num_forward_ : value.producer + 1;
    const OpId last = leaves ? n - 1 : last_needed_[v];
    if (value.kind == ValueKind::kTangent && last == kNone) unread_tangent_bytes_ += value.bytes;
    if (last < begin) continue;
    change[begin] += value.bytes;
    change[last + 1] -= value.bytes;
  }
  fixed_bytes_.assign(n, 0);
  Bytes bytes = 0;
  for (OpId t = 0; t < n; ++t) fixed_bytes_[t] = bytes += change[t];
}

bool StageProgram::may_recompute(OpId t, OpId op) const {
  const bool just_ran = t - 1 == op && !(graph_.has_boundary && t == num_forward_);
  if (!may_repeat(graph_, op) || just_ran || t < num_forward_) return false;
  Bytes bytes = fixed_bytes_[t] + graph_.ops[op].workspace_bytes;
  OpId last = kNone;
  for (ValueId v : graph_.ops[op].outputs) {
    bytes += charged_bytes(graph_.values[v]);
    if (managed_[v]) last = std::max(last, last_needed_[v]);
  }
  for (ValueId v : graph_.ops[op].inputs) bytes += managed_[v] ? graph_.values[v].bytes : 0;
  return last >= t && bytes <= budget_bytes_;
}

// By op: may it run again in stage t, as far as options_.reach goes?
std::vector<char> StageProgram::in_reach(OpId t) const {
  if (options_.reach == 0) return std::vector<char>(graph_.num_ops(), 1);
  std::vector<char> reached(graph_.num_ops(), 0);
  std::vector<OpId> front{t};
  for (int step = 0; step < options_.reach; ++step) {
    std::vector<OpId> next;
    for (OpId reader : front) {
      for (ValueId v : graph_.ops[reader].inputs) {
        const OpId producer = graph_.values[v].producer;
        if (!managed_[v] || reached[producer]++) continue;
        next.push_back(producer);
      }
    }
    front = std::move(next);
  }
  return reached;
}

// With a reach, an op runs again in a stage only for a read in it.
void StageProgram::add_uses(OpId t) {
  for (OpId op = 0; op < static_cast<OpId>(run_[t].size()); ++op) {
    if (run_[t][op] == kNothing) continue;
    std::vector<ilp::Term> terms{{run_[t][op], -1}};
    bool read_by_first_run = false;
    for (OpId reader = op + 1; reader <= t; ++reader) {
      const auto reads = [&](ValueId v) { return managed_[v] && graph_.values[v].producer == op; };
      const auto& inputs = graph_.ops[reader].inputs;
      if (std::none_of(inputs.begin(), inputs.end(), reads)) continue;
      read_by_first_run |= reader == t;
      if (reader < static_cast<OpId>(run_[t].size()) && run_[t][reader] != kNothing) terms.emplace_back(run_[t][reader], 1);
    }
    if (!read_by_first_run) model_.add_row(terms, 0, ilp::kInfinity);
  }
}

void StageProgram::add_runs() {
  run_.resize(graph_.num_ops());
  Micros plain_us = 0;
  for (const Op& op : graph_.ops) plain_us += op.time_us;
  const double per_us = plain_us > 0 ? 1000 / plain_us : 1;  // costs are thousandths of the plain time
  std::vector<std::vector<ilp::Term>> of_op(graph_.num_ops());
  for (OpId t = num_forward_; t < graph_.num_ops(); ++t) {
    if (!graph_.has_boundary && t == 0) continue;
    const OpId end = graph_.has_boundary ? num_forward_ : t;
    run_[t].assign(end, kNothing);
    const std::vector<char> reached = in_reach(t);
    for (OpId op = 0; op < end; ++op) {
      if (!reached[op] || !may_recompute(t, op)) continue;
      run_[t][op] = model_.add_binary(graph_.ops[op].time_us * per_us);
      of_op[op].emplace_back(run_[t][op], 1);
    }
    if (options_.reach > 0) add_uses(t);
    too_large_ = std::int64_t{8} * model_.num_variables() > options_.most_nonzeros;
    if (too_large_) return;
  }
  for (OpId op = 0; op < graph_.num_ops() && options_.most_recomputes > 0; ++op) {
    if (static_cast<int>(of_op[op].size()) > options_.most_recomputes) {
      model_.add_row(of_op[op], -ilp::kInfinity, options_.most_recomputes);
    }
  }
}

void StageProgram::add_replays() {
  replays_.resize(graph_.num_ops() + 1);
  if (graph_.rng_state_bytes == 0) return;
  for (OpId op = 0; op < graph_.num_ops(); ++op) {
    const auto runs_again = [&](const std::vector<int>& runs) {
      return op < static_cast<OpId>(runs.size()) && runs[op] != kNothing;
    };
    if (graph_.ops[op].is_random && std::any_of(run_.begin(), run_.end(), runs_again)) random_ops_.push_back(op);
  }
  for (auto& stage : replays_) stage.assign(random_ops_.size(), kNothing);
  for (std::size_t i = 0; i < random_ops_.size(); ++i) {
    for (OpId t = graph_.num_ops() - 1; t > random_ops_[i]; --t) {
      const int later = replays_[t + 1][i];
      const int now = random_ops_[i] < static_cast<OpId>(run_[t].size()) ? run_[t][random_ops_[i]] : kNothing;
      if (now == kNothing) {
        replays_[t][i] = later;
        continue;
      }
      replays_[t][i] = model_.add_continuous(0, 1);
      model_.add_row({{replays_[t][i], 1}, {now, -1}}, 0, ilp::kInfinity);
      if (later != kNothing) model_.add_row({{replays_[t][i], 1}, {later, -1}}, 0, ilp::kInfinity);
    }
    for (OpId t = 0; t <= random_ops_[i]; ++t) replays_[t][i] = replays_[random_ops_[i] + 1][i];
  }
}

void StageProgram::add_stage(OpId t) {
  for (ValueId v : candidates_) kept_[t].emplace_back(v, held_[v]);
  if (graph_.has_boundary && t == num_forward_) add_boundary_row();
  const bool recomputes = std::any_of(run_[t].begin(), run_[t].end(), [](int variable) { return variable != kNothing; });
  if (recomputes) begin_running_sum();
  for (OpId op = 0; op < static_cast<OpId>(run_[t].size()) && !infeasible_; ++op) {
    if (run_[t][op] != kNothing) add_recompute(t, op);
  }
  running_sum_ = kNothing;
  change_.clear();
  add_first_run(t);
}

void StageProgram::begin_running_sum() {
  std::vector<ilp::Term> terms = held_terms();
  double most = 0;
  for (const ilp::Term& term : terms) most += term.second;
  running_sum_ = model_.add_continuous(0, most);
  terms.emplace_back(running_sum_, -1);
  model_.add_row(terms, 0, 0);
  change_.clear();
}

void StageProgram::add_recompute(OpId t, OpId op) {
  const int run = run_[t][op];
  Bytes run_bytes = graph_.ops[op].workspace_bytes;
  for (ValueId v : graph_.ops[op].inputs) {
    if (!managed_[v]) continue;
    if (held_[v] == kNothing) {  // can't be there: the op can't run
      model_.fix(run, 0);
      return;
    }
    model_.add_row({{held_[v], 1}, {run, -1}}, 0, ilp::kInfinity);
  }
  for (ValueId v : graph_.ops[op].outputs) run_bytes += charged_bytes(graph_.values[v]);
  if (graph_.ops[op].is_random) run_bytes += graph_.rng_state_bytes;
  add_memory_row(t, op, fixed_bytes_[t], run_bytes);

  const auto after = [&](ValueId v, bool written) {
    if (!managed_[v] || last_needed_[v] < t) return;
    const int variable = model_.add_continuous(0, 1);
    std::vector<ilp::Term> terms{{variable, 1}};
    if (held_[v] != kNothing) terms.emplace_back(held_[v], -1);
    if (written) terms.emplace_back(run, -1);
    model_.add_row(terms, -ilp::kInfinity, 0);
    replace(v, variable);
  };
  for (ValueId v : graph_.ops[op].inputs) after(v, false);
  for (ValueId v : graph_.ops[op].outputs) after(v, true);
}

void StageProgram::add_first_run(OpId t) {
  const Op& op = graph_.ops[t];
  for (ValueId v : op.inputs) {
    if (!managed_[v]) continue;
    if (held_[v] == kNothing)
      infeasible_ = true;
    else
      model_.fix(held_[v], 1);
  }
  Bytes bytes = fixed_bytes_[t] + op.workspace_bytes;
  for (ValueId v : op.outputs) bytes += charged_bytes(graph_.values[v]);
  add_memory_row(t, t, bytes, 0);
  if (infeasible_) return;

  for (ValueId v : op.inputs) {
    if (!managed_[v] || last_needed_[v] <= t) continue;
    const int variable = model_.add_binary();
    model_.add_row({{variable, 1}, {held_[v], -1}}, -ilp::kInfinity, 0);
    replace(v, variable);
  }
  for (ValueId v : op.outputs) {
    if (managed_[v] && last_needed_[v] > t) replace(v, model_.add_binary());
  }
  for (ValueId v : std::vector<ValueId>(candidates_)) {
    if (last_needed_[v] <= t) replace(v, kNothing);
  }
  if (t + 1 >= num_forward_) return;
  for (ValueId v : candidates_) {
    if (graph_.values[v].retention == Retention::kUntilForwardEnd) model_.fix(held_[v], 1);
  }
}

void StageProgram::add_boundary_row() {
  std::vector<ilp::Term> terms = held_terms();
  for (int variable : replays_[num_forward_]) {
    if (variable != kNothing) terms.emplace_back(variable, scaled(graph_.rng_state_bytes));
  }
  model_.add_row(terms, -ilp::kInfinity, scaled(budget_bytes_ - fixed_bytes_[num_forward_] - unread_tangent_bytes_));
}

// Bytes while `op` runs in stage t: held + fixed + run_bytes when it runs at all (stage t's own op always does).
void StageProgram::add_memory_row(OpId t, OpId op, Bytes fixed_bytes, Bytes run_bytes) {
  double most = scaled(fixed_bytes + run_bytes);
  for (ValueId v : candidates_) most += scaled(graph_.values[v].bytes);
  most += static_cast<double>(random_ops_.size()) * scaled(graph_.rng_state_bytes);
  if (most <= scaled(budget_bytes_)) return;
  if (fixed_bytes > budget_bytes_) {
    infeasible_ = true;
    return;
  }
  std::vector<ilp::Term> terms;
  if (running_sum_ == kNothing) {
    terms = held_terms();
  } else {
    if (!change_.empty()) {
      const int next = model_.add_continuous(0, most);
      change_.emplace_back(running_sum_, 1);
      change_.emplace_back(next, -1);
      model_.add_row(change_, 0, 0);
      running_sum_ = next;
      change_.clear();
    }
    terms.emplace_back(running_sum_, 1);
  }
  if (run_bytes > 0) terms.emplace_back(run_[t][op], scaled(run_bytes));
  for (std::size_t i = 0; i < random_ops_.size(); ++i) {
    if (random_ops_[i] > t) continue;
    const bool waits = op < t && random_ops_[i] >= op;  // its run of this stage is still to come, or this one
    const int variable = replays_[waits ? t : t + 1][i];
    if (variable != kNothing) terms.emplace_back(variable, scaled(graph_.rng_state_bytes));
  }
  model_.add_row(terms, -ilp::kInfinity, scaled(budget_bytes_ - fixed_bytes));
}

void StageProgram::replace(ValueId v, int variable) {
  if (running_sum_ != kNothing) {
    // A variable that came since the sum was last brought up to date has only one entry, and leaves with it.
    const auto known =
        std::find_if(change_.begin(), change_.end(), [&](const ilp::Term& term) { return term.first == held_[v]; });
    if (held_[v] != kNothing && known != change_.end())
      change_.erase(known);
    else if (held_[v] != kNothing)
      change_.emplace_back(held_[v], -scaled(graph_.values[v].bytes));
    if (variable != kNothing) change_.emplace_back(variable, scaled(graph_.values[v].bytes));
  }
  const auto place = std::lower_bound(candidates_.begin(), candidates_.end(), v);
  if (held_[v] == kNothing && variable != kNothing) candidates_.insert(place, v);
  if (held_[v] != kNothing && variable == kNothing) candidates_.erase(place);
  held_[v] = variable;
}

std::vector<ilp::Term> StageProgram::held_terms() const {
  std::vector<ilp::Term> terms;
  for (ValueId v : candidates_) terms.emplace_back(held_[v], scaled(graph_.values[v].bytes));
  return terms;
}

std::vector<OpId> StageProgram::sequence(const std::vector<double>& values) const {
  std::vector<OpId> sequence;
  for (OpId t = 0; t < graph_.num_ops(); ++t) {
    for (OpId op = 0; op < static_cast<OpId>(run_[t].size()); ++op) {
      if (run_[t][op] != kNothing && values[run_[t][op]] > 0.5) sequence.push_back(op);
    }
    sequence.push_back(t);
  }
  return sequence;
}

std::vector<ilp::Term> StageProgram::start(const std::vector<OpId>& sequence) const {
  std::vector<std::vector<char>> runs(graph_.num_ops());
  for (OpId t = 0; t < graph_.num_ops(); ++t) runs[t].assign(run_[t].size(), 0);
  std::vector<char> done(graph_.num_ops(), 0);
  std::vector<OpId> waiting;
  for (OpId op : sequence) {
    if (done[op]) {
      waiting.push_back(op);
      continue;
    }
    done[op] = 1;
    for (OpId again : waiting) {
      if (again < static_cast<OpId>(runs[op].size())) runs[op][again] = 1;
    }
    waiting.clear();
  }
  std::vector<ilp::Term> start;
  for (OpId t = 0; t < graph_.num_ops(); ++t) {
    for (OpId op = 0; op < static_cast<OpId>(run_[t].size()); ++op) {
      if (run_[t][op] != kNothing) start.emplace_back(run_[t][op], runs[t][op]);
    }
  }
  return start;
}

double StageProgram::kept(const std::vector<double>& values, OpId stage, ValueId v) const {
  const auto& kept = kept_[stage];
  const auto found = std::lower_bound(kept.begin(), kept.end(), std::pair{v, -1});
  return found != kept.end() && found->first == v ? values[found->second] : 0;
}

}  // namespace rockmate

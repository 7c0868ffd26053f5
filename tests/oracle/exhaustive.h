// Exhaustive search on small graphs: the least time of any schedule within a budget, under the semantics of schedule.h. Written
// from the definition, shares nothing with the solvers, and is slow on purpose: Dijkstra over (ops done, values alive).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <queue>
#include <vector>

#include "rockmate/partition/block_problem.h"

namespace rockmate::testing {

inline constexpr Micros kNoSchedule = std::numeric_limits<Micros>::infinity();

class Exhaustive {
 public:
  explicit Exhaustive(const TrainingGraph& graph) : graph_(graph), readers_(readers_of(graph)) {
    for (const Op& op : graph.ops) num_forward_ += op.pass == Pass::kForward ? 1 : 0;
  }

  // Recomputation time of the best schedule whose peak is at most the budget: forward ops once each in order, backward ops in
  // order, any forward op again at any moment of the backward pass.
  Micros least_recomputation(Bytes budget) {
    budget_ = budget;
    staged_ = false;
    reset();
    push({0, 0, 0}, 0);
    return run(num_forward_ == graph_.num_ops());
  }

  // The same for the backward pass of a block alone, under the rules of rk-Checkmate: before each backward op that reads a
  // forward value, forward ops in ascending order, each at most once; any set of at most save_bytes alive at the start.
  Micros least_block_recomputation(const BlockProblem& problem, Bytes save_bytes, Bytes peak_bytes) {
    budget_ = peak_bytes;
    staged_ = true;
    reset();
    std::vector<ValueId> forward_values;
    std::uint64_t tangents = 0;
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      const Value& value = graph_.values[v];
      if (value.kind == ValueKind::kTangent) tangents |= bit(v);
      if (value.producer != kNone && value.producer < num_forward_) forward_values.push_back(v);
    }
    for (std::uint64_t chosen = 0; chosen < (std::uint64_t{1} << forward_values.size()); ++chosen) {
      std::uint64_t alive = tangents;
      Bytes saved = 0;
      for (std::size_t i = 0; i < forward_values.size(); ++i) {
        if ((chosen >> i & 1) == 0) continue;
        alive |= bit(forward_values[i]);
        if (forward_values[i] != problem.output) saved += charged_bytes(graph_.values[forward_values[i]]);
      }
      if (saved <= save_bytes) push({num_forward_, 0, alive}, 0);
    }
    return run(false);
  }

 private:
  struct State {
    OpId done;            // ops of the plain order done
    OpId next_recompute;  // staged: only this forward op and later ones may still be recomputed in this stage
    std::uint64_t alive;  // values that an op writes, and tangents
    auto operator<=>(const State&) const = default;
  };

  static std::uint64_t bit(ValueId v) { return std::uint64_t{1} << v; }

  void reset() {
    best_.clear();
    queue_ = {};
  }

  void push(const State& state, Micros time_us) {
    const auto [known, is_new] = best_.try_emplace(state, time_us);
    if (!is_new && known->second <= time_us) return;
    known->second = time_us;
    queue_.push({time_us, state});
  }

  Bytes bytes(std::uint64_t alive) const {
    Bytes sum = 0;
    for (ValueId v = 0; v < graph_.num_values(); ++v) sum += (alive & bit(v)) != 0 ? charged_bytes(graph_.values[v]) : 0;
    return sum;
  }

  // Alive values after computing the op, or nothing when it can't run within the budget.
  bool compute(const Op& op, std::uint64_t alive, std::uint64_t& after) const {
    Bytes inside = bytes(alive) + op.workspace_bytes;
    for (ValueId v : op.inputs) {
      const bool is_there = is_resident(graph_.values[v].kind) || (alive & bit(v)) != 0;
      if (!is_there) return false;
    }
    after = alive;
    for (ValueId v : op.outputs) {
      inside += charged_bytes(graph_.values[v]);
      after |= bit(v);
    }
    return inside <= budget_;
  }

  bool may_free(ValueId v, OpId done) const {
    const Value& value = graph_.values[v];
    if (value.retention == Retention::kUntilStepEnd) return false;
    if (value.retention == Retention::kUntilForwardEnd && done < num_forward_) return false;
    return true;
  }

  bool starts_stage(OpId op) const {
    for (ValueId v : graph_.ops[op].inputs) {
      const OpId producer = graph_.values[v].producer;
      if (producer != kNone && producer < num_forward_) return true;
    }
    return false;
  }

  Micros run(bool) {
    while (!queue_.empty()) {
      const auto [time_us, state] = queue_.top();
      queue_.pop();
      if (best_[state] < time_us) continue;
      if (state.done == graph_.num_ops()) return time_us;
      expand(state, time_us);
    }
    return kNoSchedule;
  }

  void expand(const State& state, Micros time_us) {
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      if ((state.alive & bit(v)) != 0 && may_free(v, state.done)) {
        push({state.done, state.next_recompute, state.alive & ~bit(v)}, time_us);
      }
    }
    std::uint64_t after = 0;
    if (compute(graph_.ops[state.done], state.alive, after)) {
      const OpId done = state.done + 1;
      if (done == num_forward_) {
        for (ValueId v = 0; v < graph_.num_values(); ++v) after |= graph_.values[v].kind == ValueKind::kTangent ? bit(v) : 0;
      }
      push({done, 0, after}, time_us);
    }
    if (state.done < num_forward_ || (staged_ && !starts_stage(state.done))) return;
    for (OpId op = staged_ ? state.next_recompute : 0; op < num_forward_; ++op) {
      if (!graph_.ops[op].recomputable || !compute(graph_.ops[op], state.alive, after)) continue;
      push({state.done, staged_ ? op + 1 : 0, after}, time_us + graph_.ops[op].time_us);
    }
  }

  struct Entry {
    Micros time_us;
    State state;
    bool operator<(const Entry& other) const { return time_us > other.time_us; }
  };

  const TrainingGraph& graph_;
  std::vector<std::vector<OpId>> readers_;
  OpId num_forward_ = 0;
  Bytes budget_ = 0;
  bool staged_ = false;
  std::map<State, Micros> best_;
  std::priority_queue<Entry> queue_;
};

}  // namespace rockmate::testing

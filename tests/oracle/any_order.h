// Exhaustive search on tiny graphs with nothing held fixed but what schedule.h and the verifier fix: backward ops in any order,
// and in graphs of one pass every op at any moment. Dijkstra over (ops that have run, values alive); slow on purpose.
#pragma once

#include <cstdint>
#include <map>
#include <queue>
#include <vector>

#include "tests/oracle/exhaustive.h"

namespace rockmate::testing {

class AnyOrder {
 public:
  explicit AnyOrder(const TrainingGraph& graph) : graph_(graph), num_forward_(num_forward_ops(graph)) {}

  // Recomputation time of the fastest schedule within the budget. Random ops are not looked at: the graph must have none.
  Micros least_recomputation(Bytes budget) {
    budget_ = budget;
    best_.clear();
    queue_ = {};
    push({0, 0}, 0);
    const std::uint64_t all = (std::uint64_t{1} << graph_.num_ops()) - 1;
    while (!queue_.empty()) {
      const auto [time_us, state] = queue_.top();
      queue_.pop();
      if (best_[state] < time_us) continue;
      if (state.ran == all) return time_us;
      expand(state, time_us);
    }
    return kNoSchedule;
  }

 private:
  struct State {
    std::uint64_t ran, alive;
    auto operator<=>(const State&) const = default;
  };
  struct Entry {
    Micros time_us;
    State state;
    bool operator<(const Entry& other) const { return time_us > other.time_us; }
  };

  static std::uint64_t bit(int i) { return std::uint64_t{1} << i; }
  bool in_forward(const State& state) const { return (state.ran & (bit(num_forward_) - 1)) != bit(num_forward_) - 1; }

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

  void expand(const State& state, Micros time_us) {
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      const Retention retention = graph_.values[v].retention;
      const bool waits = retention == Retention::kUntilForwardEnd && in_forward(state);
      if ((state.alive & bit(v)) == 0 || retention == Retention::kUntilStepEnd || waits) continue;
      push({state.ran, state.alive & ~bit(v)}, time_us);
    }
    for (OpId op = 0; op < graph_.num_ops(); ++op) try_op(op, state, time_us);
  }

  void try_op(OpId op, const State& state, Micros time_us) {
    const bool again = (state.ran & bit(op)) != 0;
    if (again && (!may_repeat(graph_, op) || in_forward(state))) return;
    if (graph_.has_boundary && in_forward(state) && (state.ran & (bit(op) - 1)) != bit(op) - 1) return;
    Bytes inside = bytes(state.alive) + graph_.ops[op].workspace_bytes;
    for (ValueId v : graph_.ops[op].inputs) {
      if (!is_resident(graph_.values[v].kind) && (state.alive & bit(v)) == 0) return;
    }
    State after{state.ran | bit(op), state.alive};
    for (ValueId v : graph_.ops[op].outputs) {
      inside += charged_bytes(graph_.values[v]);
      after.alive |= bit(v);
    }
    if (inside > budget_) return;
    const bool ends_forward = graph_.has_boundary && in_forward(state) && !in_forward(after);
    for (ValueId v = 0; v < graph_.num_values() && ends_forward; ++v) {
      if (graph_.values[v].kind == ValueKind::kTangent) after.alive |= bit(v);
    }
    push(after, again ? time_us + graph_.ops[op].time_us : time_us);
  }

  const TrainingGraph& graph_;
  OpId num_forward_;
  Bytes budget_ = 0;
  std::map<State, Micros> best_;
  std::priority_queue<Entry> queue_;
};

}  // namespace rockmate::testing

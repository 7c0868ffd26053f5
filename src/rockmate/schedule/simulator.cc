#include "rockmate/schedule/simulator.h"

#include <algorithm>
#include <stdexcept>

#include "rockmate/schedule/verifier.h"

namespace rockmate {
namespace {

// The charged values that are alive, as the actions go by.
class Memory {
 public:
  explicit Memory(const TrainingGraph& graph) : graph_(graph), alive_(graph.values.size(), false) {}

  Bytes held() const { return held_; }
  bool alive(ValueId id) const { return alive_[id]; }

  void appear(ValueId id) {
    if (!alive_[id]) held_ += charged_bytes(graph_.values[id]);
    alive_[id] = true;
  }

  void disappear(ValueId id) {
    held_ -= charged_bytes(graph_.values[id]);
    alive_[id] = false;
  }

  void tangents_appear() {
    for (ValueId id = 0; id < graph_.num_values(); ++id) {
      if (graph_.values[id].kind == ValueKind::kTangent) appear(id);
    }
  }

 private:
  const TrainingGraph& graph_;
  std::vector<bool> alive_;
  Bytes held_ = 0;
};

std::vector<int> count_computes(const TrainingGraph& graph, const Schedule& schedule) {
  std::vector<int> computes(graph.ops.size(), 0);
  for (const Action& action : schedule.actions) {
    if (action.kind == Action::Kind::kCompute) ++computes[action.id];
  }
  return computes;
}

}  // namespace

double Simulation::overhead() const { return recompute_time_us > 0 ? recompute_time_us / (time_us - recompute_time_us) : 0; }

Simulation simulate(const TrainingGraph& graph, const Schedule& schedule) {
  if (const auto fault = verify(graph, schedule)) {
    throw std::invalid_argument("[simulate] the schedule is no training step of this graph, plan it again. " + fault->message);
  }
  Simulation result;
  Memory memory(graph);
  Bytes saved_states = 0;  // generator states held for random ops that are computed again
  const std::vector<int> total = count_computes(graph, schedule);
  std::vector<int> done(graph.ops.size(), 0);

  for (std::size_t at = 0; at < schedule.actions.size(); ++at) {
    if (at == schedule.forward_end) memory.tangents_appear();
    const Action& action = schedule.actions[at];
    Bytes inside = memory.held() + saved_states;
    if (action.kind == Action::Kind::kFree) {
      memory.disappear(action.id);
    } else {
      const Op& op = graph.ops[action.id];
      const bool first = done[action.id] == 0;
      const bool replayed = op.is_random && total[action.id] > 1;
      if (replayed) inside += graph.rng_state_bytes;
      if (replayed && first) saved_states += graph.rng_state_bytes;
      for (ValueId output : op.outputs) inside += charged_bytes(graph.values[output]);
      inside += op.workspace_bytes;

      for (ValueId output : op.outputs) memory.appear(output);
      if (++done[action.id] == total[action.id] && replayed) saved_states -= graph.rng_state_bytes;
      result.time_us += op.time_us;
      if (!first) result.recompute_time_us += op.time_us;
      if (!first) ++result.num_recomputed;
    }
    if (inside > result.peak_bytes) {
      result.peak_bytes = inside;
      result.peak_action = at;
    }
    result.bytes_inside.push_back(inside);
    result.bytes_after.push_back(memory.held() + saved_states);
  }
  return result;
}

std::vector<ValueId> alive_at(const TrainingGraph& graph, const Schedule& schedule, std::size_t at) {
  if (at >= schedule.actions.size()) {
    throw std::invalid_argument("[simulate] the schedule has " + std::to_string(schedule.actions.size()) +
                                " actions, none is number " + std::to_string(at));
  }
  if (const auto fault = verify(graph, schedule)) throw std::invalid_argument("[simulate] " + fault->message);
  Memory memory(graph);
  for (std::size_t i = 0; i <= at; ++i) {
    if (i == schedule.forward_end) memory.tangents_appear();
    const Action& action = schedule.actions[i];
    if (action.kind == Action::Kind::kCompute) {
      for (ValueId output : graph.ops[action.id].outputs) memory.appear(output);
    } else if (i < at) {
      memory.disappear(action.id);
    }
  }
  std::vector<ValueId> alive;
  for (ValueId id = 0; id < graph.num_values(); ++id) {
    if (memory.alive(id) && charged_bytes(graph.values[id]) > 0) alive.push_back(id);
  }
  std::stable_sort(alive.begin(), alive.end(),
                   [&](ValueId a, ValueId b) { return graph.values[a].bytes > graph.values[b].bytes; });
  return alive;
}

}  // namespace rockmate

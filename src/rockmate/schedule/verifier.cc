#include "rockmate/schedule/verifier.h"

namespace rockmate {
namespace {

class Verifier {
 public:
  Verifier(const TrainingGraph& graph, const Schedule& schedule)
      : graph_(graph), schedule_(schedule), alive_(graph.values.size(), false), computed_(graph.ops.size(), 0) {
    for (ValueId id = 0; id < graph.num_values(); ++id) alive_[id] = is_resident(graph.values[id].kind);
  }

  std::optional<ScheduleFault> run() {
    if (!graph_.has_boundary && schedule_.forward_end != 0) {
      return fault(ScheduleError::kBadId, "the graph has no boundary, yet the schedule has a forward pass");
    }
    if (schedule_.forward_end > schedule_.actions.size()) {
      return fault(ScheduleError::kBadId, "the forward pass ends at action " + std::to_string(schedule_.forward_end) + " of " +
                                              std::to_string(schedule_.actions.size()));
    }
    for (at_ = 0; at_ < schedule_.actions.size(); ++at_) {
      if (at_ == schedule_.forward_end) {
        if (auto found = end_forward()) return found;
        for (ValueId id = 0; id < graph_.num_values(); ++id) {
          if (graph_.values[id].kind == ValueKind::kTangent) alive_[id] = true;
        }
      }
      const Action& action = schedule_.actions[at_];
      if (auto found = action.kind == Action::Kind::kCompute ? compute(action.id) : free(action.id)) return found;
    }
    if (at_ == schedule_.forward_end) {
      if (auto found = end_forward()) return found;
    }
    return end_step();
  }

 private:
  using Found = std::optional<ScheduleFault>;

  bool in_forward() const { return at_ < schedule_.forward_end; }

  Found fault(ScheduleError error, const std::string& what) const {
    std::string where = "at the end";
    if (at_ < schedule_.actions.size()) {
      const auto [kind, id] = schedule_.actions[at_];
      const bool compute = kind == Action::Kind::kCompute;
      where = "action " + std::to_string(at_) + (compute ? ", compute " : ", free ");
      if (id < 0 || id >= (compute ? graph_.num_ops() : graph_.num_values())) {
        where += std::to_string(id);
      } else if (compute) {
        where += graph_.ops[id].target + " '" + graph_.ops[id].name + "'";
      } else {
        where += "'" + graph_.values[id].name + "'";
      }
    }
    return ScheduleFault{error, at_, "[verify] " + where + ": " + what};
  }

  Found compute(OpId id) {
    if (id < 0 || id >= graph_.num_ops()) return fault(ScheduleError::kBadId, "the graph has no such op");
    const Op& op = graph_.ops[id];
    if (!graph_.has_boundary) {
      if (computed_[id] > 0 && !op.recomputable) {
        return fault(ScheduleError::kNotRecomputable, "has side effects and runs again");
      }
      if (op.is_random && computed_[id] == 0) {
        if (id < last_random_) return fault(ScheduleError::kRandomOrder, "draws random numbers out of graph order");
        last_random_ = id;
      }
    } else if (op.pass == Pass::kForward) {
      if (in_forward() && computed_[id] > 0) return fault(ScheduleError::kForwardOpCount, "runs twice in the forward pass");
      if (in_forward() && id < last_forward_) return fault(ScheduleError::kForwardOrder, "runs out of graph order");
      if (computed_[id] > 0 && !op.recomputable)
        return fault(ScheduleError::kNotRecomputable, "has side effects and runs again");
      last_forward_ = id;
    } else {
      if (in_forward()) return fault(ScheduleError::kBackwardInForward, "a backward op runs in the forward pass");
      if (computed_[id] > 0) return fault(ScheduleError::kBackwardOpCount, "a backward op runs twice");
      if (op.is_random && id < last_random_) {
        return fault(ScheduleError::kRandomOrder, "draws random numbers out of graph order");
      }
      if (op.is_random) last_random_ = id;
    }
    for (ValueId input : op.inputs) {
      if (!alive_[input]) return fault(ScheduleError::kInputNotAlive, "input '" + graph_.values[input].name + "' is not alive");
    }
    for (ValueId output : op.outputs) alive_[output] = true;
    ++computed_[id];
    return {};
  }

  Found free(ValueId id) {
    if (id < 0 || id >= graph_.num_values()) return fault(ScheduleError::kBadId, "the graph has no such value");
    const Value& value = graph_.values[id];
    if (is_resident(value.kind)) return fault(ScheduleError::kFreeNotAlive, "it stays through the whole step");
    if (!alive_[id]) return fault(ScheduleError::kFreeNotAlive, "it is not alive");
    if (value.retention == Retention::kUntilStepEnd) return fault(ScheduleError::kFreedTooEarly, "it leaves the step");
    if (value.retention == Retention::kUntilForwardEnd && !all_forward_ran()) {
      return fault(ScheduleError::kFreedTooEarly, "it leaves the forward pass, which has not run to its end");
    }
    alive_[id] = false;
    return {};
  }

  bool all_forward_ran() const { return first_missing(Pass::kForward) == kNone; }

  OpId first_missing(Pass pass) const {
    for (OpId id = 0; id < graph_.num_ops(); ++id) {
      if (graph_.ops[id].pass == pass && computed_[id] == 0) return id;
    }
    return kNone;
  }

  Found end_forward() const {
    if (!graph_.has_boundary) return {};
    const OpId missing = first_missing(Pass::kForward);
    if (missing == kNone) return {};
    return fault(ScheduleError::kForwardOpCount, "the forward pass ends without '" + graph_.ops[missing].name + "'");
  }

  Found end_step() const {
    const OpId undone = graph_.has_boundary ? kNone : first_missing(Pass::kForward);
    const OpId missing = undone == kNone ? first_missing(Pass::kBackward) : undone;
    if (missing != kNone) return fault(ScheduleError::kBackwardOpCount, "'" + graph_.ops[missing].name + "' never runs");
    for (ValueId id = 0; id < graph_.num_values(); ++id) {
      const Value& value = graph_.values[id];
      if (is_resident(value.kind)) continue;
      const bool leaves = value.retention == Retention::kUntilStepEnd;
      if (leaves && value.kind != ValueKind::kTangent && !alive_[id]) {
        return fault(ScheduleError::kFreedTooEarly, "'" + value.name + "' leaves the step but is not alive");
      }
      if (!leaves && alive_[id]) return fault(ScheduleError::kLeftAlive, "'" + value.name + "' is still alive");
    }
    return {};
  }

  const TrainingGraph& graph_;
  const Schedule& schedule_;
  std::vector<bool> alive_;
  std::vector<int> computed_;
  std::size_t at_ = 0;
  OpId last_forward_ = kNone;
  OpId last_random_ = kNone;
};

}  // namespace

std::optional<ScheduleFault> verify(const TrainingGraph& graph, const Schedule& schedule) {
  return Verifier(graph, schedule).run();
}

}  // namespace rockmate

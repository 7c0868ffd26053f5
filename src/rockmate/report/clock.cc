#include "rockmate/report/clock.h"

namespace rockmate {

Clock::Clock(const TrainingGraph& graph, const Schedule& schedule) : graph_(graph) {
  for (const Op& op : graph.ops) is_timed_ |= op.time_us > 0;
  for (std::size_t at = 0; at < schedule.actions.size(); ++at) {
    if (at == schedule.forward_end) forward_end_ = end_;
    end_ += step(schedule.actions[at]);
  }
  if (schedule.forward_end >= schedule.actions.size()) forward_end_ = end_;
}

double Clock::step(const Action& action) const {
  if (action.kind == Action::Kind::kFree) return 0;
  return is_timed_ ? graph_.ops[action.id].time_us / 1e3 : 1;
}

}  // namespace rockmate

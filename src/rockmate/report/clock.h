// The time axis of a plan's pictures.
#pragma once

#include "rockmate/schedule/schedule.h"

namespace rockmate {

// Where the actions of a schedule lie on the time axis, in ms; computes are one apart where no op of the graph has a time.
class Clock {
 public:
  Clock(const TrainingGraph& graph, const Schedule& schedule);

  bool is_timed() const { return is_timed_; }
  const char* label() const { return is_timed_ ? "time (ms)" : "ops run"; }
  double step(const Action& action) const;  // how long it takes
  double forward_end() const { return forward_end_; }
  double end() const { return end_; }

 private:
  const TrainingGraph& graph_;
  bool is_timed_ = false;
  double forward_end_ = 0, end_ = 0;
};

}  // namespace rockmate

// Runs the planner's stages: names and times them, reports progress from the calling thread, stops them.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "rockmate/planner/planner.h"

namespace rockmate {

// What a stage's work sees of its surroundings. Work polls `stop` and returns what it has when it is true.
struct StageState {
  std::atomic<bool> stop{false};
  std::atomic<int> done{0};
  std::atomic<int> total{1};
};

class StageRunner {
 public:
  explicit StageRunner(const PlannerOptions& options);

  // Runs `work` in a thread of its own while the caller's thread calls on_progress some twenty times a second. Throws
  // Interrupted when that asks to stop, and what `work` throws. After the time limit, or once options.stop is set, `stop` is
  // true.
  void run(const std::string& stage, const std::function<void(StageState&)>& work);

  // Calls task(i) for i in [0, count) on options.threads threads.
  void parallel(int count, const std::function<void(int)>& task) const;

  double seconds_left() const;
  bool timed_out() const { return timed_out_; }
  const std::vector<StageTime>& times() const { return times_; }

 private:
  const PlannerOptions& options_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool timed_out_ = false;
  std::vector<StageTime> times_;
};

// Points of the curve that are worked on: options.curve_points, fewer on graphs of many thousand ops (at least 16), where each
// one takes long and the points lie close.
int points_for(const TrainingGraph& graph, const PlannerOptions& options);

}  // namespace rockmate

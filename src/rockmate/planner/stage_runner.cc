#include "rockmate/planner/stage_runner.h"

#include <algorithm>

#include "rockmate/planner/background.h"

namespace rockmate {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

StageRunner::StageRunner(const PlannerOptions& options) : options_(options) {}

double StageRunner::seconds_left() const {
  if (options_.stop != nullptr && *options_.stop) return 0;
  return std::max(options_.time_limit_s - seconds_since(begin_), 0.0);
}

void StageRunner::run(const std::string& stage, const std::function<void(StageState&)>& work) {
  const auto begin = Clock::now();
  StageState state;
  const auto report = [&](double done) {
    if (options_.on_progress && !state.stop && !options_.on_progress({stage, done})) throw Interrupted{};
  };
  report(0);
  run_watched([&] { work(state); },
              [&] {
                try {
                  if (seconds_left() <= 0) {
                    timed_out_ = true;
                    state.stop = true;
                  } else {
                    report(std::min(1.0, static_cast<double>(state.done) / std::max<int>(state.total, 1)));
                  }
                } catch (...) {
                  state.stop = true;  // the work is waited for
                  throw;
                }
              });
  report(1);
  times_.push_back({stage, seconds_since(begin)});
}

void StageRunner::parallel(int count, const std::function<void(int)>& task) const {
  run_parallel(count, options_.threads, task);
}

int points_for(const TrainingGraph& graph, const PlannerOptions& options) {
  constexpr OpId kOpsAtFullCurve = 4000;
  const std::int64_t fewer = std::int64_t{options.curve_points} * kOpsAtFullCurve / std::max(graph.num_ops(), kOpsAtFullCurve);
  return static_cast<int>(std::max<std::int64_t>(fewer, std::min(options.curve_points, 16)));
}

}  // namespace rockmate

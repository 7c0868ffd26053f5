#include "rockmate/planner/stage_runner.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace rockmate {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPoll = std::chrono::milliseconds(50);

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

StageRunner::StageRunner(const PlannerOptions& options) : options_(options) {}

double StageRunner::seconds_left() const { return std::max(options_.time_limit_s - seconds_since(begin_), 0.0); }

void StageRunner::run(const std::string& stage, const std::function<void(StageState&)>& work) {
  const auto begin = Clock::now();
  StageState state;
  std::mutex mutex;
  std::condition_variable finished;
  bool is_finished = false;
  std::exception_ptr error;
  std::jthread worker([&] {
    try {
      work(state);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    is_finished = true;
    finished.notify_one();
  });

  const auto report = [&](double done) {
    if (options_.on_progress && !state.stop && !options_.on_progress({stage, done})) throw Interrupted{};
  };
  try {
    report(0);
    std::unique_lock lock(mutex);
    while (!finished.wait_for(lock, kPoll, [&] { return is_finished; })) {
      lock.unlock();
      if (seconds_left() <= 0) {
        timed_out_ = true;
        state.stop = true;
      } else {
        report(std::min(1.0, static_cast<double>(state.done) / std::max<int>(state.total, 1)));
      }
      lock.lock();
    }
    lock.unlock();
    worker.join();
    if (error) std::rethrow_exception(error);
    report(1);
  } catch (...) {
    state.stop = true;  // the worker's destructor waits for it
    throw;
  }
  times_.push_back({stage, seconds_since(begin)});
}

void StageRunner::parallel(int count, const std::function<void(int)>& task) const {
  const int wanted = options_.threads > 0 ? options_.threads : static_cast<int>(std::thread::hardware_concurrency());
  std::atomic<int> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < std::min(std::max(wanted, 1), count); ++i) {
      threads.emplace_back([&] {
        try {
          for (int at = next++; at < count; at = next++) task(at);
        } catch (...) {
          const std::lock_guard lock(mutex);
          error = std::current_exception();
        }
      });
    }
  }
  if (error) std::rethrow_exception(error);
}

int points_for(const TrainingGraph& graph, const PlannerOptions& options) {
  constexpr OpId kOpsAtFullCurve = 4000;
  const std::int64_t fewer = std::int64_t{options.curve_points} * kOpsAtFullCurve / std::max(graph.num_ops(), kOpsAtFullCurve);
  return static_cast<int>(std::max<std::int64_t>(fewer, std::min(options.curve_points, 16)));
}

}  // namespace rockmate

#include "rockmate/planner/background.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace rockmate {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(50);

}  // namespace

void run_watched(const std::function<void()>& work, const std::function<void()>& watch) {
  std::mutex mutex;
  std::condition_variable finished;
  bool is_finished = false;
  std::exception_ptr error;
  std::jthread worker([&] {
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    is_finished = true;
    finished.notify_one();
  });
  std::unique_lock lock(mutex);
  while (!finished.wait_for(lock, kPoll, [&] { return is_finished; })) {
    lock.unlock();
    watch();
    lock.lock();
  }
  lock.unlock();
  worker.join();
  if (error) std::rethrow_exception(error);
}

void run_parallel(int count, int threads, const std::function<void(int)>& task) {
  std::atomic<int> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < std::min(num_threads(threads), count); ++i) {
      workers.emplace_back([&] {
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

int num_threads(int wanted) { return std::max(wanted > 0 ? wanted : static_cast<int>(std::thread::hardware_concurrency()), 1); }

}  // namespace rockmate

#include "rockmate/planners/program_solve.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "rockmate/solvers/evict.h"
#include "rockmate/solvers/keep.h"
#include "rockmate/solvers/sequence_memory.h"

namespace rockmate {

ilp::Outcome solve_within(const PlannerContext& context, const std::string& stage, const ilp::Model& model,
                          ilp::SolveOptions options) {
  const double seconds = std::min(options.time_limit_s, context.seconds_left());
  std::atomic<bool> stop{false};
  options.stop = &stop;
  options.time_limit_s = seconds;
  ilp::Outcome outcome;
  bool finished = false;
  std::mutex mutex;
  std::condition_variable wake;
  const PlannerContext own = context.within(seconds);
  std::jthread worker([&] {
    ilp::Outcome found = ilp::solve(model, options);
    const std::lock_guard lock(mutex);
    outcome = std::move(found);
    finished = true;
    wake.notify_one();
  });
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, std::chrono::milliseconds(50), [&] { return finished; })) {
    lock.unlock();
    if (!own.progress(stage, 1 - own.seconds_left() / std::max(seconds, 1e-3))) stop = true;
    lock.lock();
  }
  return outcome;
}

std::vector<OpId> evicted_sequence(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  const auto go_on = [&](const std::vector<OpId>&, Bytes) { return !context.expired(); };
  std::vector<OpId> sequence = evict(graph, store_all_sequence(graph), budget_bytes, go_on);
  if (SequenceMemory(graph, sequence).peak_bytes() > budget_bytes) return {};
  return keep_within(graph, std::move(sequence), budget_bytes);
}

}  // namespace rockmate

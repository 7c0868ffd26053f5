#include "rockmate/planner/descents.h"

#include <algorithm>

#include "rockmate/planner/background.h"
#include "rockmate/solvers/evict.h"
#include "rockmate/solvers/keep.h"

namespace rockmate {
namespace {

constexpr std::size_t kMostStarts = 32;
constexpr std::int64_t kMost = 128, kLeast = 8;
constexpr std::int64_t kOpsAtMost = 2500;  // the time of one grows with the square of the ops

}  // namespace

std::vector<OpId> descent(const TrainingGraph& graph, const std::vector<OpId>& start, Bytes budget_bytes,
                          const std::atomic<bool>* stop, std::uint64_t seed) {
  const auto goes_on = [&](const std::vector<OpId>&, Bytes) { return stop == nullptr || !*stop; };
  return keep_within(graph, evict(graph, start, budget_bytes, goes_on, seed), budget_bytes, stop);
}

std::int64_t num_descents(const TrainingGraph& graph, std::int64_t least, std::int64_t most) {
  const std::int64_t ops = std::max<std::int64_t>(graph.num_ops(), 1);
  return std::clamp(most * kOpsAtMost * kOpsAtMost / (ops * ops), least, most);
}

std::vector<std::vector<OpId>> descents(const TrainingGraph& graph, const std::vector<const std::vector<OpId>*>& starts,
                                        Bytes budget_bytes, int threads, const std::atomic<bool>& stop) {
  if (starts.empty() || graph.num_ops() > kMaxOpsOfDescents) return {};
  const int count = static_cast<int>(num_descents(graph, kLeast, kMost));
  const int num_starts = static_cast<int>(std::min(starts.size(), kMostStarts));
  std::vector<std::vector<OpId>> found(count);
  run_parallel(count, threads, [&](int i) {
    if (!stop) found[i] = descent(graph, *starts[i % num_starts], budget_bytes, &stop, i < num_starts ? 0 : i);
  });
  return found;
}

}  // namespace rockmate

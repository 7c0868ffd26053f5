#include "rockmate/planner/descents.h"

#include "rockmate/planner/background.h"
#include "rockmate/solvers/evict.h"
#include "rockmate/solvers/keep.h"

namespace rockmate {

std::vector<OpId> descent(const TrainingGraph& graph, const std::vector<OpId>& start, Bytes budget_bytes,
                          const std::atomic<bool>& stop) {
  return keep_within(graph, evict(graph, start, budget_bytes, [&](const auto&, Bytes) { return !stop; }), budget_bytes, &stop);
}

std::vector<std::vector<OpId>> descents(const TrainingGraph& graph, const std::vector<const std::vector<OpId>*>& starts,
                                        Bytes budget_bytes, int threads, const std::atomic<bool>& stop) {
  std::vector<std::vector<OpId>> found(starts.size());
  run_parallel(static_cast<int>(starts.size()), threads, [&](int i) {
    if (!stop) found[i] = descent(graph, *starts[i], budget_bytes, stop);
  });
  return found;
}

}  // namespace rockmate

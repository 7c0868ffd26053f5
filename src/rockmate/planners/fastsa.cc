#include "rockmate/planners/fastsa.h"

#include <algorithm>

#include "rockmate/planner/background.h"
#include "rockmate/solvers/polish.h"

namespace rockmate {

PlannerAnswer fastsa(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  const double wanted = context.options().polish_s;
  const double usual = 3 + static_cast<double>(graph.num_ops()) / 500;
  const double seconds = std::min(wanted >= 0 ? wanted : usual, context.seconds_left());
  PolishOptions options;
  options.budget_bytes = budget_bytes;
  options.seconds = std::max(seconds, 1e-3);
  std::atomic<bool> stop{false};
  options.stop = &stop;
  PlannerAnswer answer;
  const PlannerContext own = context.within(options.seconds);
  run_watched([&] { answer.sequence = polish(graph, store_all_sequence(graph), options).sequence; },
              [&] {
                if (!context.progress("anneal", 1 - own.seconds_left() / options.seconds)) stop = true;
              });
  return answer;
}

}  // namespace rockmate

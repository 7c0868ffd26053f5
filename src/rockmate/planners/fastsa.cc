#include "rockmate/planners/fastsa.h"

#include <algorithm>
#include <thread>

#include "rockmate/solvers/polish.h"

namespace rockmate {

PlannerAnswer fastsa(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  const double wanted = context.options().polish_s;
  const double usual = 3 + static_cast<double>(graph.num_ops()) / 500;
  const double seconds = std::min(wanted >= 0 ? wanted : usual, context.seconds_left());
  PolishOptions options;
  options.budget_bytes = budget_bytes;
  options.seconds = std::max(seconds, 1e-3);
  std::atomic<bool> stop{false}, finished{false};
  options.stop = &stop;
  PlannerAnswer answer;
  {
    std::jthread search([&] {
      answer.sequence = polish(graph, store_all_sequence(graph), options).sequence;
      finished = true;
    });
    while (!finished) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const double left = context.seconds_left() - (context.options().time_limit_s - seconds);
      if (!context.progress("anneal", 1 - left / options.seconds)) stop = true;
    }
  }
  return answer;
}

}  // namespace rockmate

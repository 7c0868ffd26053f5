#include "rockmate/planners/fastsa.h"

#include <algorithm>

#include "rockmate/planner/background.h"
#include "rockmate/solvers/anneal.h"
#include "rockmate/solvers/polish.h"

namespace rockmate {
namespace {

constexpr double kFirstShare = 0.8;  // of the time: from the plain order to the budget
constexpr double kSecondHeat = 0.05;

}  // namespace

PlannerAnswer fastsa(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  const double wanted = context.options().polish_s;
  const double usual = 3 + static_cast<double>(graph.num_ops()) / 500;
  const double seconds = std::min(wanted >= 0 ? wanted : usual, context.seconds_left());
  std::atomic<bool> stop{false};
  AnnealOptions first;
  first.budget_bytes = budget_bytes;
  first.seconds = std::max(seconds * kFirstShare, 1e-3);
  first.stop = &stop;
  PolishOptions then;
  then.budget_bytes = budget_bytes;
  then.seconds = std::max(seconds * (1 - kFirstShare), 1e-3);
  then.heat = kSecondHeat;
  then.stop = &stop;
  PlannerAnswer answer;
  const PlannerContext own = context.within(std::max(seconds, 1e-3));
  run_watched([&] { answer.sequence = polish(graph, anneal(graph, store_all_sequence(graph), first).sequence, then).sequence; },
              [&] {
                if (!context.progress("anneal", 1 - own.seconds_left() / seconds)) stop = true;
              });
  return answer;
}

}  // namespace rockmate

#include "rockmate/planners/fastsa.h"

#include <algorithm>

#include "rockmate/planner/background.h"
#include "rockmate/solvers/anneal.h"
#include "rockmate/solvers/polish.h"

namespace rockmate {
namespace {

constexpr double kFirstShare = 0.8;  // of the time, at most: from the plain order to the budget
constexpr double kSecondHeat = 0.05;
// What a slow machine does in the time that is given, and takes some two thirds of it for.
constexpr double kTrialsPerSecond = 0.7e6, kOpsOfHalfRate = 450;  // on the smallest graph; on one of so many ops half of it
constexpr double kRoundsPerSecond = 3000, kOpsPerSecond = 1.8e6;  // rounds: the first, or as many as touch so many ops

double usual_seconds(double num_ops) { return 3 + num_ops / 500; }

}  // namespace

PlannerAnswer fastsa(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  const auto num_ops = static_cast<double>(graph.num_ops());
  const double wanted = context.options().polish_s;
  const double given = wanted >= 0 ? wanted : usual_seconds(num_ops);
  const double left = std::max(context.seconds_left(), 1e-3);
  std::atomic<bool> stop{false};
  AnnealOptions first;
  first.budget_bytes = budget_bytes;
  first.seconds = left * kFirstShare;
  first.max_trials = static_cast<std::int64_t>(given * kTrialsPerSecond / (1 + num_ops / kOpsOfHalfRate)) + 1;
  first.stop = &stop;
  PolishOptions then;
  then.budget_bytes = budget_bytes;
  then.max_rounds = static_cast<std::int64_t>(given * std::min(kRoundsPerSecond, kOpsPerSecond / num_ops)) + 1;
  then.heat = kSecondHeat;
  then.stop = &stop;
  PlannerAnswer answer;
  run_watched(
      [&] {
        const std::vector<OpId> sequence = anneal(graph, store_all_sequence(graph), first).sequence;
        then.seconds = std::max(context.seconds_left(), 1e-3);
        answer.sequence = polish(graph, sequence, then).sequence;
      },
      [&] {
        if (!context.progress("anneal", std::min(1 - context.seconds_left() / left, 1.0))) stop = true;
      });
  return answer;
}

}  // namespace rockmate

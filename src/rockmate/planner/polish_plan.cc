#include "rockmate/planner/polish_plan.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include "rockmate/planner/descents.h"
#include "rockmate/planner/judge.h"
#include "rockmate/planner/ruin_recreate.h"
#include "rockmate/planner/stage_runner.h"
#include "rockmate/solvers/polish.h"

namespace rockmate {
namespace {

constexpr std::int64_t kRoundsPerOp = 8;          // of one run ...
constexpr std::int64_t kMostRounds = 50'000'000;  // ... and at most, times ops: a round takes longer on a large graph
constexpr double kHeats[] = {0.2, 0.02};
constexpr double kLastHeat = 0.004;
constexpr int kRuins = 2;                                           // runs of ruin and recreate
constexpr std::int64_t kMostRuinRounds = 64, kLeastRuinRounds = 4;  // a round takes as long as a descent

struct Start {
  const std::vector<OpId>* sequence;
  double heat;
};

class PlanPolisher {
 public:
  PlanPolisher(const TrainingGraph& graph, const PlanCurve& curve, Bytes budget_bytes, const PlannerOptions& options)
      : graph_(graph), curve_(curve), budget_bytes_(budget_bytes), options_(options) {
    const Plan* within = curve.at(budget_bytes);
    if (within == nullptr) {
      throw std::invalid_argument("[plan] no plan of the curve is within " + std::to_string(budget_bytes) +
                                  " bytes, the least is " + std::to_string(curve.min_budget_bytes()));
    }
    best_ = *within;
  }

  Plan run() {
    if (best_.time_us <= curve_.store_all_time_us) return std::move(best_);
    StageRunner runner(options_);
    runner.run("polish", [&](StageState& state) {
      const std::function<void()> phases[] = {
          [&] { descend(state); },
          [&] { improve(first_starts(), 1, runner, state); },
          [&] { ruin(runner, state); },
          [&] {
            improve({{&best_.sequence, kHeats[1]}, {&best_.sequence, kLastHeat}}, 33, runner, state);
          },
      };
      state.total = static_cast<int>(std::size(phases));
      for (const auto& phase : phases) {
        if (!state.stop) phase();
        ++state.done;
      }
    });
    return std::move(best_);
  }

 private:
  // From each of the next faster plans.
  void descend(const StageState& state) {
    std::vector<const std::vector<OpId>*> starts;
    for (const Plan* plan = curve_.at(budget_bytes_) + 1; plan <= &curve_.plans.back(); ++plan)
      starts.push_back(&plan->sequence);
    for (const std::vector<OpId>& sequence : descents(graph_, starts, budget_bytes_, options_.threads, state.stop)) {
      if (!sequence.empty()) take(judged_plan(graph_, sequence, "polish"));
    }
  }

  // The best plan within the budget, and the next faster one, which has to be brought down.
  std::vector<Start> first_starts() const {
    std::vector<Start> starts;
    const Plan* within = curve_.at(budget_bytes_);
    for (const double heat : kHeats) starts.push_back({&best_.sequence, heat});
    if (within != &curve_.plans.back()) {
      for (const double heat : kHeats) starts.push_back({&(within + 1)->sequence, heat});
    }
    return starts;
  }

  void improve(const std::vector<Start>& starts, std::uint64_t first_seed, const StageRunner& runner, StageState& state) {
    std::vector<std::optional<Plan>> found(starts.size());
    runner.parallel(static_cast<int>(starts.size()), [&](int i) {
      PolishOptions options;
      options.budget_bytes = budget_bytes_;
      options.seconds = std::max(runner.seconds_left(), 1e-3);
      options.max_rounds = std::min(kRoundsPerOp * graph_.num_ops(), kMostRounds / graph_.num_ops());
      options.seed = first_seed + static_cast<std::uint64_t>(i);
      options.heat = starts[i].heat;
      options.stop = &state.stop;
      found[i] = judged_plan(graph_, polish(graph_, *starts[i].sequence, options).sequence, "polish");
    });
    for (std::optional<Plan>& plan : found) take(std::move(plan));
  }

  // From the best so far.
  void ruin(const StageRunner& runner, StageState& state) {
    if (graph_.num_ops() > kMaxOpsOfDescents) return;
    std::vector<std::optional<Plan>> found(kRuins);
    runner.parallel(kRuins, [&](int i) {
      RuinOptions options;
      options.budget_bytes = budget_bytes_;
      options.seconds = std::max(runner.seconds_left(), 1e-3);
      options.max_rounds = num_descents(graph_, kLeastRuinRounds, kMostRuinRounds);
      options.seed = 1 + static_cast<std::uint64_t>(i);
      options.stop = &state.stop;
      found[i] = judged_plan(graph_, ruin_and_recreate(graph_, best_.sequence, options), "polish");
    });
    for (std::optional<Plan>& plan : found) take(std::move(plan));
  }

  void take(std::optional<Plan> plan) {
    if (plan && plan->peak_bytes <= budget_bytes_ && plan->time_us < best_.time_us) best_ = std::move(*plan);
  }

  const TrainingGraph& graph_;
  const PlanCurve& curve_;
  Bytes budget_bytes_;
  const PlannerOptions& options_;
  Plan best_;
};

}  // namespace

Plan polished_plan(const TrainingGraph& graph, const PlanCurve& curve, Bytes budget_bytes, const PlannerOptions& options) {
  return PlanPolisher(graph, curve, budget_bytes, options).run();
}

}  // namespace rockmate

#include "cli/planning.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "rockmate/cost/roofline.h"
#include "rockmate/graph/file.h"
#include "rockmate/graph/json.h"
#include "rockmate/schedule/budget.h"

namespace rockmate::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int) { interrupted = 1; }

// One line that is drawn over itself, at most ten times a second.
class ProgressBar {
 public:
  ProgressBar() : visible_(isatty(STDERR_FILENO)) {}
  ~ProgressBar() {
    if (drawn_) std::fputs("\r\033[K", stderr);
  }

  void draw(const Progress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (!visible_ || (drawn_ && now - last_ < std::chrono::milliseconds(100))) return;
    last_ = now;
    drawn_ = true;
    constexpr int kWidth = 30;
    const int full = static_cast<int>(progress.done * kWidth);
    std::string bar;
    for (int i = 0; i < kWidth; ++i) bar += i < full ? "█" : "░";
    std::fprintf(stderr, "\r\033[K%-12s %s %3.0f%%", progress.stage.c_str(), bar.c_str(), 100 * progress.done);
  }

 private:
  bool visible_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace

void catch_interrupt() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

bool was_interrupted() { return interrupted; }

TrainingGraph load_graph(const std::string& path, const std::string& device) {
  TrainingGraph graph = read_as(path, graph_from_json);
  return device.empty() ? graph : with_roofline_costs(std::move(graph), find_device(device));
}

PlanCurve plan_with_progress(const TrainingGraph& graph, PlannerOptions options) {
  ProgressBar bar;
  std::atomic<bool> stop{interrupted != 0};
  options.stop = &stop;
  options.on_progress = [&](const Progress& progress) {
    bar.draw(progress);
    if (interrupted) stop = true;
    return true;
  };
  return plan_curve(graph, options);
}

PlannerResult run_with_progress(const PlannerEntry& planner, const TrainingGraph& graph, Bytes budget_bytes,
                                PlannerOptions options, const std::string& prefix) {
  ProgressBar bar;
  std::atomic<bool> stop{interrupted != 0};
  options.stop = &stop;
  options.on_progress = [&](const Progress& progress) {
    bar.draw({prefix + progress.stage, progress.done});
    if (interrupted) stop = true;
    return true;  // planners see `stop`, and keep what they have
  };
  return run_planner(planner, graph, budget_bytes, PlannerContext(options, &stop));
}

nlohmann::ordered_json to_json(const PlannerResult& result, const std::string& planner, Bytes budget_bytes, const Plan& plain) {
  using nlohmann::ordered_json;
  const auto or_null = [](bool known, auto value) { return known ? ordered_json(value) : ordered_json(nullptr); };
  ordered_json object = {{"status", name_of(result.status)}, {"planner", planner}, {"budget_bytes", budget_bytes}};
  const bool has_plan = result.plan.has_value();
  object["peak_bytes"] = or_null(has_plan, has_plan ? result.plan->peak_bytes : 0);
  object["store_all_peak_bytes"] = plain.peak_bytes;
  object["store_all_time_us"] = plain.time_us;
  object["time"] = or_null(has_plan, has_plan ? result.plan->time_us : 0);
  object["overhead"] = or_null(has_plan, has_plan ? result.plan->overhead : 0);
  object["lower_bound"] = or_null(std::isfinite(result.lower_bound), result.lower_bound);
  object["min_budget_bytes"] = or_null(result.min_budget_bytes > 0, result.min_budget_bytes);
  object["min_budget_bound_bytes"] = result.min_budget_bound_bytes;
  object["num_recomputed"] = or_null(has_plan, has_plan ? result.plan->num_recomputed : 0);
  object["plan_seconds"] = result.plan_seconds;
  object["note"] = result.note;
  return object;
}

namespace {

void tell_unmet(const std::string& budget, Bytes budget_bytes, const std::string& rest) {
  std::fprintf(stderr, "[plan] the budget '%s' (%lld bytes) can't be met: %s\n", budget.c_str(),
               static_cast<long long>(budget_bytes), rest.c_str());
}

std::string least_that_can(Bytes least, Bytes plain_peak_bytes) {
  char share[32];
  std::snprintf(share, sizeof share, "%.1f%%",
                100.0 * static_cast<double>(least) / static_cast<double>(std::max<Bytes>(plain_peak_bytes, 1)));
  return "the least that can is " + std::to_string(least) + " bytes (" + format_bytes(least) + ", " + share + " of the " +
         format_bytes(plain_peak_bytes) + " without recomputation)";
}

}  // namespace

void tell_infeasible(const PlannerResult& result, const std::string& planner, const std::string& budget, Bytes budget_bytes,
                     const Plan& plain) {
  const Bytes least = result.min_budget_bytes;
  std::string known = least > 0 ? least_that_can(least, plain.peak_bytes) : "it knows no budget that can be";
  if (budget_bytes < result.min_budget_bound_bytes) {
    known += ", and no schedule at all holds less than " + std::to_string(result.min_budget_bound_bytes) + " bytes";
  }
  tell_unmet(budget, budget_bytes, known + (result.note.empty() ? "" : "; ") + result.note + " (planner " + planner + ")");
}

const Plan* plan_within(const PlanCurve& curve, const std::string& budget, Bytes budget_bytes) {
  const Plan* plan = curve.at(budget_bytes);
  if (!plan) tell_unmet(budget, budget_bytes, least_that_can(curve.min_budget_bytes(), curve.store_all_peak_bytes));
  return plan;
}

std::string status_name(PlanStatus status) {
  switch (status) {
    case PlanStatus::kOptimal:
      return "optimal";
    case PlanStatus::kFeasible:
      return "feasible";
    case PlanStatus::kTimeLimit:
      return "time_limit";
  }
  return "";
}

nlohmann::ordered_json to_json(const PlanCurve& curve) {
  using nlohmann::ordered_json;
  ordered_json stages = ordered_json::object();
  for (const StageTime& stage : curve.stages) stages[stage.stage] = stage.seconds;
  ordered_json plans = ordered_json::array();
  for (const Plan& plan : curve.plans) {
    plans.push_back({{"peak_bytes", plan.peak_bytes},
                     {"time_us", plan.time_us},
                     {"overhead", plan.overhead},
                     {"num_recomputed", plan.num_recomputed},
                     {"planner", plan.planner}});
  }
  return {{"store_all_peak_bytes", curve.store_all_peak_bytes},
          {"store_all_time_us", curve.store_all_time_us},
          {"min_budget_bytes", curve.min_budget_bytes()},
          {"status", status_name(curve.status)},
          {"complete", !was_interrupted()},
          {"num_blocks", curve.num_blocks},
          {"num_block_classes", curve.num_block_classes},
          {"has_chain", curve.has_chain},
          {"note", curve.note},
          {"stages_s", stages},
          {"plans", plans}};
}

int tell_interrupted() {
  std::fputs("interrupted: this is what was found until then\n", stderr);
  return kInterrupted;
}

}  // namespace rockmate::cli

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/planning.h"
#include "rockmate/graph/file.h"
#include "rockmate/planner/judge.h"
#include "rockmate/schedule/budget.h"
#include "rockmate/schedule/json.h"

namespace rockmate::cli {
namespace {

using nlohmann::ordered_json;

double share(Bytes bytes, const PlanCurve& curve) {
  return curve.store_all_peak_bytes > 0 ? 100.0 * static_cast<double>(bytes) / static_cast<double>(curve.store_all_peak_bytes)
                                        : 100.0;
}

void print_curve_facts(const PlanCurve& curve) {
  std::printf("without recomputation  %s, %.3f ms\n", format_bytes(curve.store_all_peak_bytes).c_str(),
              curve.store_all_time_us / 1e3);
  std::printf("least budget           %s (%.1f%%)\n", format_bytes(curve.min_budget_bytes()).c_str(),
              share(curve.min_budget_bytes(), curve));
  if (!curve.note.empty()) std::printf("%s\n", curve.note.c_str());
}

void print(const PlannerResult& result, const std::string& planner, Bytes budget_bytes, const Plan& plain) {
  const auto percent = [&](Bytes bytes) {
    return 100.0 * static_cast<double>(bytes) / static_cast<double>(std::max<Bytes>(plain.peak_bytes, 1));
  };
  std::printf("planner                %s, %s in %.2f s\n", planner.c_str(), name_of(result.status).c_str(),
              result.plan_seconds);
  std::printf("budget                 %s (%.1f%%)\n", format_bytes(budget_bytes).c_str(), percent(budget_bytes));
  if (result.plan) {
    std::printf("predicted peak         %s (%.1f%%)\n", format_bytes(result.plan->peak_bytes).c_str(),
                percent(result.plan->peak_bytes));
    std::printf("overhead               %.2f%%, %d ops recomputed; no schedule has less than %.2f%%\n",
                100 * result.plan->overhead, result.plan->num_recomputed, 100 * result.lower_bound);
  }
  std::printf("without recomputation  %s, %.3f ms\n", format_bytes(plain.peak_bytes).c_str(), plain.time_us / 1e3);
  if (result.min_budget_bytes > 0) {
    const Bytes bound = result.min_budget_bound_bytes;
    std::printf("least budget known     %s (%.1f%%); ", format_bytes(result.min_budget_bytes).c_str(),
                percent(result.min_budget_bytes));
    if (result.min_budget_bytes <= bound) {
      std::printf("proved to be the least\n");
    } else {
      std::printf("no schedule has less than %s (%.1f%%)\n", format_bytes(bound).c_str(), percent(bound));
    }
  }
  if (!result.note.empty()) std::printf("%s\n", result.note.c_str());
}

}  // namespace

int plan(const PlanSettings& settings, const std::string& budget, const std::string& output_path) {
  parse_budget(budget, 1);  // nonsense is told before the work begins
  const PlannerEntry& planner = find_planner(settings.planner_name);
  const TrainingGraph graph = load_graph(settings.graph_path, settings.device);
  const Plan plain = *judged_plan(graph, store_all_sequence(graph), "store-all");
  const Bytes budget_bytes = parse_budget(budget, plain.peak_bytes);
  const PlannerResult result = run_with_progress(planner, graph, budget_bytes, settings.planner);
  if (result.plan && !output_path.empty()) write_file(output_path, schedule_to_json(result.plan->schedule));
  if (settings.json) {
    ordered_json document = to_json(result, planner.name, budget_bytes, plain);
    document["complete"] = !was_interrupted();
    std::printf("%s\n", document.dump(2).c_str());
  } else if (result.plan) {
    print(result, planner.name, budget_bytes, plain);
  }
  if (!result.plan && was_interrupted()) throw Interrupted();
  if (!result.plan) tell_infeasible(result, planner.name, budget, budget_bytes, plain);
  if (was_interrupted()) return tell_interrupted();
  return result.plan ? kDone : kInfeasible;
}

int curve(const PlanSettings& settings, const std::string& output_path) {
  const TrainingGraph graph = load_graph(settings.graph_path, settings.device);
  const PlanCurve curve = plan_with_progress(graph, settings.planner);
  const std::string document = to_json(curve).dump(2) + "\n";
  if (!output_path.empty()) write_file(output_path, document);
  if (settings.json) {
    std::fputs(document.c_str(), stdout);
    return was_interrupted() ? tell_interrupted() : kDone;
  }
  std::printf("%12s %8s %9s %11s  %s\n", "peak", "share", "overhead", "recomputed", "planner");
  for (const Plan& plan : curve.plans) {
    std::printf("%12s %7.1f%% %8.2f%% %11d  %s\n", format_bytes(plan.peak_bytes).c_str(), share(plan.peak_bytes, curve),
                100 * plan.overhead, plan.num_recomputed, plan.planner.c_str());
  }
  print_curve_facts(curve);
  return was_interrupted() ? tell_interrupted() : kDone;
}

}  // namespace rockmate::cli

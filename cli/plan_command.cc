#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/planning.h"
#include "rockmate/graph/file.h"
#include "rockmate/schedule/budget.h"
#include "rockmate/schedule/json.h"

namespace rockmate::cli {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const Plan& plan) {
  return {{"peak_bytes", plan.peak_bytes},
          {"time_us", plan.time_us},
          {"overhead", plan.overhead},
          {"num_recomputed", plan.num_recomputed},
          {"planner", plan.planner}};
}

ordered_json to_json(const PlanCurve& curve) {
  ordered_json stages = ordered_json::object();
  for (const StageTime& stage : curve.stages) stages[stage.stage] = stage.seconds;
  return {{"store_all_peak_bytes", curve.store_all_peak_bytes},
          {"store_all_time_us", curve.store_all_time_us},
          {"min_budget_bytes", curve.min_budget_bytes()},
          {"status", status_name(curve.status)},
          {"num_blocks", curve.num_blocks},
          {"num_block_classes", curve.num_block_classes},
          {"has_chain", curve.has_chain},
          {"note", curve.note},
          {"stages_s", stages}};
}

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

}  // namespace

int plan(const PlanSettings& settings, const std::string& budget, const std::string& output_path) {
  parse_budget(budget, 1);  // nonsense is told before the work begins
  const TrainingGraph graph = load_graph(settings.graph_path, settings.device);
  const PlanCurve curve = plan_with_progress(graph, settings.planner);
  const Bytes budget_bytes = parse_budget(budget, curve.store_all_peak_bytes);
  const Plan* plan = plan_within(curve, budget, budget_bytes);
  if (!plan) return kInfeasible;
  if (!output_path.empty()) write_file(output_path, schedule_to_json(plan->schedule));
  if (settings.json) {
    ordered_json result = {{"budget_bytes", budget_bytes}};
    result.update(to_json(*plan));
    result.update(to_json(curve));
    std::printf("%s\n", result.dump(2).c_str());
    return kDone;
  }
  std::printf("budget                 %s (%.1f%%)\n", format_bytes(budget_bytes).c_str(), share(budget_bytes, curve));
  std::printf("predicted peak         %s (%.1f%%)\n", format_bytes(plan->peak_bytes).c_str(), share(plan->peak_bytes, curve));
  std::printf("overhead               %.2f%%, %d ops recomputed\n", 100 * plan->overhead, plan->num_recomputed);
  std::printf("planner                %s\n", plan->planner.c_str());
  print_curve_facts(curve);
  return kDone;
}

int curve(const PlanSettings& settings) {
  const TrainingGraph graph = load_graph(settings.graph_path, settings.device);
  const PlanCurve curve = plan_with_progress(graph, settings.planner);
  if (settings.json) {
    ordered_json result = to_json(curve);
    result["plans"] = ordered_json::array();
    for (const Plan& plan : curve.plans) result["plans"].push_back(to_json(plan));
    std::printf("%s\n", result.dump(2).c_str());
    return kDone;
  }
  std::printf("%12s %8s %9s %11s  %s\n", "peak", "share", "overhead", "recomputed", "planner");
  for (const Plan& plan : curve.plans) {
    std::printf("%12s %7.1f%% %8.2f%% %11d  %s\n", format_bytes(plan.peak_bytes).c_str(), share(plan.peak_bytes, curve),
                100 * plan.overhead, plan.num_recomputed, plan.planner.c_str());
  }
  print_curve_facts(curve);
  return kDone;
}

}  // namespace rockmate::cli

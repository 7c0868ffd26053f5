// rockmate report: a plan as one HTML page.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "cli/planning.h"
#include "rockmate/graph/file.h"
#include "rockmate/report/plan_page.h"
#include "rockmate/schedule/budget.h"
#include "rockmate/schedule/json.h"
#include "rockmate/schedule/simulator.h"
#include "rockmate/schedule/verifier.h"

namespace rockmate::cli {
namespace {

std::vector<CurvePoint> points_of(const PlanCurve& curve) {
  std::vector<CurvePoint> points;
  for (const Plan& plan : curve.plans) points.push_back({plan.peak_bytes, plan.overhead, plan.planner});
  return points;
}

void print(const ReportSettings& settings, const PlanPageOptions& page, const Simulation& simulation) {
  using nlohmann::ordered_json;
  ordered_json planners = ordered_json::array();
  for (const PlannerPoints& its : page.planners) planners.push_back(its.planner);
  const ordered_json result = {
      {"output", settings.output_path},
      {"budget_bytes", page.budget_bytes > 0 ? ordered_json(page.budget_bytes) : ordered_json(nullptr)},
      {"peak_bytes", simulation.peak_bytes},
      {"overhead", simulation.overhead()},
      {"num_recomputed", simulation.num_recomputed},
      {"num_plans", page.curve.size()},
      {"planners", planners},
      {"measured_peak_bytes", page.measured ? ordered_json(page.measured->peak_bytes) : ordered_json(nullptr)},
      {"complete", !was_interrupted()}};
  std::printf("%s\n", result.dump(2).c_str());
}

}  // namespace

int report(const ReportSettings& settings) {
  // Nonsense is told before the work begins.
  if (!settings.budget.empty()) parse_budget(settings.budget, 1);
  const bool is_planned = settings.schedule_path.empty() && !settings.budget.empty();
  if (is_planned && !settings.curve_path.empty()) {
    throw std::invalid_argument(
        "[report] --curve shows a curve beside a given plan, and here the plan is to be made: give a SCHEDULE too, or drop "
        "--curve");
  }
  const TrainingGraph graph = load_graph(settings.planning.graph_path, settings.planning.device);
  Schedule schedule = schedule_from_sequence(graph, store_all_sequence(graph));
  const Bytes plain = rockmate::simulate(graph, schedule).peak_bytes;
  PlanPageOptions page;
  if (!settings.budget.empty()) page.budget_bytes = parse_budget(settings.budget, plain);
  if (!settings.measured_path.empty()) page.measured = read_as(settings.measured_path, measured_from_json);
  if (!settings.compare_path.empty())
    page.planners =
        read_as(settings.compare_path, [&](const std::string& text) { return planner_points_from_json(text, plain); });
  if (!settings.schedule_path.empty()) schedule = read_as(settings.schedule_path, schedule_from_json);
  if (const auto fault = verify(graph, schedule)) {
    std::fprintf(stderr, "%s\n", fault->message.c_str());
    return kInfeasible;
  }

  if (!settings.curve_path.empty()) {
    page.curve = read_as(settings.curve_path, [&](const std::string& text) { return curve_from_json(text, plain); });
  } else if (is_planned || settings.with_curve) {
    const PlanCurve curve = plan_with_progress(graph, settings.planning.planner);
    if (is_planned) {
      const Plan* plan = plan_within(curve, settings.budget, page.budget_bytes);
      if (!plan && was_interrupted()) throw Interrupted();
      if (!plan) return kInfeasible;
      schedule = plan->schedule;
    }
    page.note = curve.note;
    if (settings.with_curve) page.curve = points_of(curve);
  }
  if (settings.compare_path.empty() && settings.with_planners) {
    page.planners = quick_planner_points(graph, settings.planners_seconds, [] { return !was_interrupted(); });
  }
  write_file(settings.output_path, plan_page(graph, schedule, page));
  if (settings.planning.json) print(settings, page, rockmate::simulate(graph, schedule));
  return was_interrupted() ? tell_interrupted() : kDone;
}

}  // namespace rockmate::cli

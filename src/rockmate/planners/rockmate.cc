#include "rockmate/planners/rockmate.h"

#include <algorithm>

namespace rockmate {
namespace {

constexpr int kPointsBesideFocus = 20;

PlannerAnswer answer_of_curve(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context,
                              bool across_blocks) {
  PlannerOptions options = focused(context.options(), budget_bytes);
  options.across_blocks = across_blocks;
  options.time_limit_s = std::max(context.seconds_left(), 1e-3);
  const PlanCurve curve = plan_curve(graph, options);
  PlannerAnswer answer;
  answer.note = curve.note;
  answer.least_peak_bytes = curve.min_budget_bytes();
  if (const Plan* plan = curve.at(budget_bytes)) answer.sequence = plan->sequence;
  return answer;
}

}  // namespace

PlannerOptions focused(PlannerOptions options, Bytes budget_bytes) {
  options.focus_bytes = budget_bytes;
  options.curve_points = std::min(options.curve_points, kPointsBesideFocus);
  return options;
}

PlannerAnswer rockmate_planner(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  return answer_of_curve(graph, budget_bytes, context, true);
}

PlannerAnswer rockmate_chain(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  return answer_of_curve(graph, budget_bytes, context, false);
}

}  // namespace rockmate

#include "rockmate/report/planner_chart.h"

#include <algorithm>

#include "rockmate/report/chart.h"
#include "rockmate/report/page.h"
#include "rockmate/report/texts.h"

namespace rockmate {
namespace {

constexpr double kUsualHighest = 1;    // overhead
constexpr std::size_t kMostDots = 60;  // more points are a line of their own

}  // namespace

std::string planner_figure(const PlannerChart& planners) {
  Chart chart;
  chart.x_label = "activation peak";
  chart.y_label = "overhead";
  chart.x_axis = Axis::kBytes;
  chart.y_axis = Axis::kShare;
  chart.summary = "Overhead of every plan over the memory that it needs";
  double highest = 0;
  int above = 0;
  const double limit = std::max(kUsualHighest, planners.chosen ? 1.2 * planners.chosen->overhead : 0);
  for (std::size_t i = 0; i < planners.lines.size(); ++i) {
    const PlannerPoints& line = planners.lines[i];
    const bool is_filled = i == 0 && planners.is_first_filled;
    Series series{.label = line.planner,
                  .color = static_cast<int>(i),
                  .stepped = true,
                  .filled = is_filled,
                  .dashed = i >= 8,
                  .dotted_points = line.points.size() <= kMostDots};
    for (const CurvePoint& point : line.points) {
      const double overhead = std::max(0.0, point.overhead);
      highest = std::max(highest, overhead);
      if (overhead > limit) {
        ++above;
      } else {
        series.points.push_back({static_cast<double>(point.peak_bytes), overhead});
      }
    }
    chart.series.push_back(std::move(series));
  }
  if (planners.chosen) chart.marker = {static_cast<double>(planners.chosen->peak_bytes), planners.chosen->overhead};
  if (planners.budget_bytes > 0) chart.vertical.push_back({"budget", static_cast<double>(planners.budget_bytes)});
  std::string notes;
  if (planners.chosen) notes = "The ring is this plan.";
  if (highest > limit) {
    notes += (notes.empty() ? "" : " ") + std::to_string(above) + (above == 1 ? " plan costs" : " plans cost") + " more than " +
             percent(limit) + ", up to " + percent(highest) + ": left out of the picture.";
  }
  return chart_figure(chart) + (notes.empty() ? "" : paragraph(notes));
}

}  // namespace rockmate

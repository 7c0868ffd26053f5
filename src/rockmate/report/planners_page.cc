#include "rockmate/report/planners_page.h"

#include <algorithm>

#include "rockmate/report/page.h"
#include "rockmate/report/planner_chart.h"
#include "rockmate/report/texts.h"
#include "rockmate/schedule/budget.h"

namespace rockmate {

std::string planners_page(const PlannersPage& page) {
  Table table;
  table.columns = {"overhead at"};
  table.columns.insert(table.columns.end(), page.budgets.begin(), page.budgets.end());
  table.columns.push_back("planning");
  const auto add = [&](const std::string& name, std::vector<std::string> cells, const std::string& last) {
    cells.resize(page.budgets.size());
    cells.insert(cells.begin(), name);
    cells.push_back(last);
    table.rows.push_back(std::move(cells));
  };
  PlannerChart chart;
  for (const PlannersPage::Row& row : page.rows) {
    add(row.points.planner, row.cells, duration(row.plan_seconds * 1e6));
    if (row.points.points.empty()) continue;
    chart.lines.push_back(row.points);
    std::sort(chart.lines.back().points.begin(), chart.lines.back().points.end(),
              [](const CurvePoint& a, const CurvePoint& b) { return a.peak_bytes < b.peak_bytes; });
  }
  add("no schedule below", page.bounds, "");
  const std::string plain = format_bytes(page.store_all_peak_bytes) + " and " + duration(page.store_all_time_us) +
                            " for a step without recomputation";
  return html_page(
      page.title, plain,
      section("Overhead over the memory that is used",
              chart.lines.empty() ? paragraph("No planner has a plan within these budgets.") : planner_figure(chart)) +
          section("In figures",
                  html_table(table) + paragraph("* proved the best of its kind; - no plan within the budget; time: "
                                                "none within the time limit.")));
}

}  // namespace rockmate

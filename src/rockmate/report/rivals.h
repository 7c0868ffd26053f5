// What other plans and other planners reach on the graph of a report: computed here, or read from the command's own output.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

// One plan that was there to choose: what it needs and what it costs.
struct CurvePoint {
  Bytes peak_bytes = 0;
  double overhead = 0;
  std::string planner = {};
};

// What one planner reaches at several budgets, ascending peak.
struct PlannerPoints {
  std::string planner;
  std::vector<CurvePoint> points;
};

// The quick planners (planners.h: is_quick) at 90 %, 80 %, ... 10 % of the store-all peak, for at most about `seconds` in all.
// A planner without any plan has no entry. go_on is asked before each planner; false ends it with what is there.
std::vector<PlannerPoints> quick_planner_points(const TrainingGraph& graph, double seconds,
                                                const std::function<bool()>& go_on = {});

// Reads what `rockmate curve --json` prints: the points of "plans", ascending peak. `store_all_peak_bytes` is of the report's
// graph; a file that says otherwise is of another graph.
// Throws std::invalid_argument ("[curve] plans[3].peak_bytes: ...").
std::vector<CurvePoint> curve_from_json(const std::string& text, Bytes store_all_peak_bytes);

// The same for what `rockmate compare --json` prints. Pairs without a plan are left out.
std::vector<PlannerPoints> planner_points_from_json(const std::string& text, Bytes store_all_peak_bytes);

}  // namespace rockmate

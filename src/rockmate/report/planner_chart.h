// The picture of overhead against memory: the curve of a model's plans, one chosen plan, and what planners reach.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rockmate/report/rivals.h"

namespace rockmate {

struct PlannerChart {
  std::vector<PlannerPoints> lines;  // ascending peak
  bool is_first_filled = false;      // the first line is the model's own curve: the area below it is filled
  Bytes budget_bytes = 0;            // the vertical line; 0 for none
  std::optional<CurvePoint> chosen;  // the ring
};

// Plans that cost many times the others would flatten the picture: those that take more than twice the time, and more than
// the chosen plan, are left out, and a sentence below says so.
std::string planner_figure(const PlannerChart& chart);

}  // namespace rockmate

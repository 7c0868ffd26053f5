// A plan as one HTML page: memory over time with the budget, who holds the memory at the peak, what other budgets and other
// planners would cost, what is kept and recomputed block by block, and what was measured beside what was predicted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rockmate/report/measured.h"
#include "rockmate/report/rivals.h"
#include "rockmate/schedule/schedule.h"

namespace rockmate {

struct PlanPageOptions {
  Bytes budget_bytes = 0;                    // the line in the picture; 0 for none
  std::vector<CurvePoint> curve = {};        // all plans, ascending peak; empty for no picture of it
  std::vector<PlannerPoints> planners = {};  // drawn beside the curve
  std::optional<MeasuredStep> measured = {};
  std::string note = {};  // a sentence below the title
};

// Throws std::invalid_argument when the schedule is no training step of the graph.
std::string plan_page(const TrainingGraph& graph, const Schedule& schedule, const PlanPageOptions& options = {});

}  // namespace rockmate

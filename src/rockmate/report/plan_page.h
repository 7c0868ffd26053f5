// A plan as one HTML page: memory over time with the budget, who holds the memory at the peak, what is kept and recomputed.
#pragma once

#include <string>
#include <vector>

#include "rockmate/schedule/schedule.h"

namespace rockmate {

// One plan that was there to choose: what it needs and what it costs.
struct CurvePoint {
  Bytes peak_bytes = 0;
  double overhead = 0;
};

struct PlanPageOptions {
  Bytes budget_bytes = 0;         // the line in the picture; 0 for none
  std::vector<CurvePoint> curve;  // all plans, ascending peak; empty for no picture of it
  std::string note;               // a sentence below the title
};

// Throws std::invalid_argument when the schedule is no training step of the graph.
std::string plan_page(const TrainingGraph& graph, const Schedule& schedule, const PlanPageOptions& options = {});

}  // namespace rockmate

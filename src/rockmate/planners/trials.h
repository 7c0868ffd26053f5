// What a planner tried on its way: every sequence is priced, and the fastest within the budget is the answer. Planners whose
// own parameter (segment size, memory of the dynamic program, ...) is not the peak itself search over that parameter this way.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

class Trials {
 public:
  Trials(const TrainingGraph& graph, Bytes budget_bytes) : graph_(graph), budget_bytes_(budget_bytes) {}

  struct Price {
    Bytes peak_bytes = 0;
    Micros time_us = 0;
  };

  // Prices the sequence, dead recomputations left out, and keeps it when it is the fastest within the budget so far, or
  // as fast with a lower peak.
  Price add(const std::vector<OpId>& sequence);

  bool found() const { return !best_.empty(); }
  Price best() const { return best_price_; }
  Bytes least_peak_bytes() const { return least_peak_bytes_; }

  PlannerAnswer answer(std::string note = "") &&;

 private:
  const TrainingGraph& graph_;
  Bytes budget_bytes_;
  std::vector<OpId> best_;
  Price best_price_;
  Bytes least_peak_bytes_ = 0;
};

}  // namespace rockmate

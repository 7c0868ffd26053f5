#include "rockmate/planners/store_all.h"

namespace rockmate {

PlannerAnswer store_all(const TrainingGraph& graph, Bytes, const PlannerContext&) {
  return {.sequence = store_all_sequence(graph), .proved = true, .bound_us = 0, .note = ""};
}

}  // namespace rockmate

// What no schedule within a budget goes below.
#pragma once

#include "rockmate/graph/graph.h"

namespace rockmate {

// Recomputation time that every schedule of the graph with a peak of at most budget_bytes has at least. Infinite when the
// largest single op, with its inputs and outputs, does not fit: then there is no schedule.
Micros lower_bound_us(const TrainingGraph& graph, Bytes budget_bytes);

// The largest single op's inputs, outputs and workspace: no schedule has a lower peak.
Bytes working_set_floor(const TrainingGraph& graph);

}  // namespace rockmate

// Every op takes one microsecond: for tests, and for counting recomputations.
#pragma once

#include "rockmate/graph/graph.h"

namespace rockmate {

// The graph with time_us = 1 at every op; sizes and workspaces stay.
TrainingGraph with_uniform_costs(TrainingGraph graph);

}  // namespace rockmate

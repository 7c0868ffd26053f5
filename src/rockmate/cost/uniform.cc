#include "rockmate/cost/uniform.h"

namespace rockmate {

TrainingGraph with_uniform_costs(TrainingGraph graph) {
  for (Op& op : graph.ops) op.time_us = 1;
  return graph;
}

}  // namespace rockmate

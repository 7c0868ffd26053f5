#include "rockmate/planners/lower_bound.h"

#include <algorithm>
#include <limits>

namespace rockmate {

Bytes working_set_floor(const TrainingGraph& graph) {
  Bytes floor = 0;
  for (const Op& op : graph.ops) {
    Bytes bytes = op.workspace_bytes;
    for (ValueId v : op.inputs) bytes += charged_bytes(graph.values[v]);
    for (ValueId v : op.outputs) bytes += charged_bytes(graph.values[v]);
    floor = std::max(floor, bytes);
  }
  return floor;
}

Micros lower_bound_us(const TrainingGraph& graph, Bytes budget_bytes) {
  if (working_set_floor(graph) > budget_bytes) return std::numeric_limits<Micros>::infinity();
  return 0;
}

}  // namespace rockmate

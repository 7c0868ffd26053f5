#include "rockmate/cost/roofline.h"

#include <algorithm>
#include <stdexcept>

namespace rockmate {

Micros roofline_time_us(const Op& op, const DeviceDescription& device) {
  const auto own = device.peak_flops.find(op.dtype);
  const double peak = own != device.peak_flops.end() ? own->second : device.peak_flops.at("float32");
  const double compute_s = op.flops / (peak * device.compute_efficiency);
  const double memory_s = static_cast<double>(op.moved_bytes) / (device.bandwidth_bytes_per_s * device.memory_efficiency);
  return device.launch_us + 1e6 * std::max(compute_s, memory_s);
}

TrainingGraph with_roofline_costs(TrainingGraph graph, const DeviceDescription& device) {
  check_device(device);
  const bool silent =
      std::all_of(graph.ops.begin(), graph.ops.end(), [](const Op& op) { return op.flops == 0 && op.moved_bytes == 0; });
  if (silent && !graph.ops.empty()) {
    throw std::invalid_argument("[roofline] no op of graph '" + graph.name +
                                "' has flops or moved_bytes: capture it again, or keep its own times");
  }
  for (Op& op : graph.ops) op.time_us = roofline_time_us(op, device);
  graph.device = device.name;
  return graph;
}

}  // namespace rockmate

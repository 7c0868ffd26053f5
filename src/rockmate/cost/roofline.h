// Times without running anything (Williams, Waterman, Patterson: "Roofline", CACM 2009): an op takes as long as its
// computation or its memory traffic, whichever is longer, and a launch on top. Departure from the paper: peaks are scaled by
// the device's efficiencies, and a graph's workspaces stay as they are, since they depend on the kernels and not on the rates.
#pragma once

#include "rockmate/cost/device.h"

namespace rockmate {

// launch_us + 1e6 * max(flops / (peak_flops[dtype] * compute_efficiency), moved_bytes / (bandwidth * memory_efficiency))
Micros roofline_time_us(const Op& op, const DeviceDescription& device);

// The graph with every op priced for the device, and the device's name. Throws std::invalid_argument when the graph has ops but
// no op says how much it computes or moves, or the device makes no sense.
TrainingGraph with_roofline_costs(TrainingGraph graph, const DeviceDescription& device);

}  // namespace rockmate

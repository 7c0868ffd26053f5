// What the roofline needs to know of a device. Five are known by name; others are read from a JSON file:
//
//   {"format": "rockmate-device", "version": 1, "name": "my-gpu", "source": "data sheet, page 3",
//    "launch_us": 5, "bandwidth_bytes_per_s": 2e12, "memory_bytes": 80000000000,
//    "compute_efficiency": 0.7, "memory_efficiency": 0.8,
//    "peak_flops": {"float32": 2e13, "bfloat16": 3e14}}
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

struct DeviceDescription {
  std::string name;
  std::string source;    // where the numbers come from
  Micros launch_us = 0;  // what an op costs that does nothing: dispatch on a CPU, the launch of a kernel on a GPU
  double bandwidth_bytes_per_s = 0;
  Bytes memory_bytes = 0;  // of the whole device; 0 when not known
  // FLOP per second without sparsity, by the dtype of the op's computation. "float32" is always there: it stands for every
  // dtype that is not listed, since what has no unit of its own runs in one at least as wide.
  std::map<std::string, double> peak_flops;
  // Share of the data sheet's figure that large real kernels reach: matrix products for the first, elementwise ops for the
  // second. They scale all times of a kind alike, so they move the balance of compute- and memory-bound ops, not more.
  double compute_efficiency = 1;
  double memory_efficiency = 1;
};

// "cpu", "v100", "a100", "h100", "h200".
const std::vector<DeviceDescription>& known_devices();

// The known device of that name, in any case, or the one in the JSON file of that path (it ends in ".json").
// Throws std::invalid_argument with the names that exist.
DeviceDescription find_device(const std::string& name_or_path);

DeviceDescription device_from_json(const std::string& text);
std::string device_to_json(const DeviceDescription& device);

// Throws std::invalid_argument unless every figure is finite, rates and efficiencies are above zero and float32 is there.
void check_device(const DeviceDescription& device);

}  // namespace rockmate

#include "rockmate/cost/device.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <stdexcept>

#include "rockmate/graph/file.h"
#include "rockmate/graph/json_reader.h"

namespace rockmate {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "rockmate-device";
constexpr int kVersion = 1;
constexpr double kTera = 1e12, kGiga = 1e9;

// Launch: about 5 us from one small kernel to the next in eager PyTorch on the GPUs, 2 us for a dispatcher call on the CPU.
// Efficiency on the GPUs: large cuBLAS products reach 65 to 85 % of the tensor units, elementwise kernels about 85 % of the
// memory's rate. bfloat16 on V100 has no unit of its own and runs as float32.
const std::vector<DeviceDescription> kDevices = {
    {"cpu",
     "2 cores of an AMD EPYC 7003 (Zen 3) at 2.45 GHz: 2 x 2 AVX2 FMA units x 8 floats x 2; a 2048^3 float32 product measured "
     "at 146 GFLOP/s and a copy at 26 GB/s, so the efficiencies are known",
     2,
     26 * kGiga,
     0,
     {{"float32", 156.8 * kGiga}, {"float64", 78.4 * kGiga}},
     0.93,
     1.0},
    {"v100",
     "NVIDIA V100 data sheet (SXM2, 32 GB), 2020",
     5,
     900 * kGiga,
     32 * Bytes{1000000000},
     {{"float32", 15.7 * kTera}, {"float64", 7.8 * kTera}, {"float16", 125 * kTera}},
     0.75,
     0.85},
    {"a100",
     "NVIDIA A100 data sheet (SXM, 80 GB), 2021; float32 without TF32",
     5,
     2039 * kGiga,
     80 * Bytes{1000000000},
     {{"float32", 19.5 * kTera}, {"float64", 19.5 * kTera}, {"float16", 312 * kTera}, {"bfloat16", 312 * kTera}},
     0.75,
     0.85},
    {"h100",
     "NVIDIA H100 data sheet (SXM, 80 GB), 2023; float32 without TF32",
     5,
     3350 * kGiga,
     80 * Bytes{1000000000},
     {{"float32", 67 * kTera}, {"float64", 67 * kTera}, {"float16", 989 * kTera}, {"bfloat16", 989 * kTera}},
     0.7,
     0.85},
    {"h200",
     "NVIDIA H200 data sheet (SXM, 141 GB), 2024; float32 without TF32",
     5,
     4800 * kGiga,
     141 * Bytes{1000000000},
     {{"float32", 67 * kTera}, {"float64", 67 * kTera}, {"float16", 989 * kTera}, {"bfloat16", 989 * kTera}},
     0.7,
     0.85},
};

[[noreturn]] void fail(const std::string& what) { throw std::invalid_argument("[device] " + what); }

}  // namespace

const std::vector<DeviceDescription>& known_devices() { return kDevices; }

DeviceDescription find_device(const std::string& name_or_path) {
  if (name_or_path.ends_with(".json")) return device_from_json(read_file(name_or_path));
  std::string lower = name_or_path;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string names;
  for (const DeviceDescription& device : kDevices) {
    if (device.name == lower) return device;
    names += device.name + ", ";
  }
  fail("'" + name_or_path + "' is unknown: there are " + names + "or give a file that ends in .json");
}

void check_device(const DeviceDescription& device) {
  const auto positive = [&](const std::string& what, double figure) {
    if (!std::isfinite(figure) || figure <= 0) fail("'" + device.name + "': " + what + " must be finite and above 0");
  };
  positive("bandwidth_bytes_per_s", device.bandwidth_bytes_per_s);
  positive("compute_efficiency", device.compute_efficiency);
  positive("memory_efficiency", device.memory_efficiency);
  if (!std::isfinite(device.launch_us) || device.launch_us < 0) fail("'" + device.name + "': launch_us must not be negative");
  if (!device.peak_flops.contains("float32")) fail("'" + device.name + "': peak_flops lacks float32");
  for (const auto& [dtype, flops] : device.peak_flops) positive("peak_flops of " + dtype, flops);
}

DeviceDescription device_from_json(const std::string& text) {
  const json document = parse_document(text, "device", kFormat, kVersion);
  JsonFields fields(document, {"device", ""});
  DeviceDescription device;
  fields.read("name", device.name);
  fields.read("source", device.source);
  fields.read("launch_us", device.launch_us);
  fields.read("bandwidth_bytes_per_s", device.bandwidth_bytes_per_s);
  fields.read("memory_bytes", device.memory_bytes);
  fields.read("peak_flops", device.peak_flops);
  fields.read("compute_efficiency", device.compute_efficiency);
  fields.read("memory_efficiency", device.memory_efficiency);
  fields.finish();
  check_device(device);
  return device;
}

std::string device_to_json(const DeviceDescription& device) {
  check_device(device);
  const nlohmann::ordered_json document = {{"format", kFormat},
                                           {"version", kVersion},
                                           {"name", device.name},
                                           {"source", device.source},
                                           {"launch_us", device.launch_us},
                                           {"bandwidth_bytes_per_s", device.bandwidth_bytes_per_s},
                                           {"memory_bytes", device.memory_bytes},
                                           {"compute_efficiency", device.compute_efficiency},
                                           {"memory_efficiency", device.memory_efficiency},
                                           {"peak_flops", device.peak_flops}};
  return document.dump(2) + "\n";
}

}  // namespace rockmate

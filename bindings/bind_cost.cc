#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "rockmate/cost/roofline.h"
#include "rockmate/cost/uniform.h"

namespace py = pybind11;

namespace rockmate {

void bind_cost(py::module_& m) {
  m.def("device_names", [] {
    std::vector<std::string> names;
    for (const DeviceDescription& device : known_devices()) names.push_back(device.name);
    return names;
  });
  m.def(
      "device_to_json", [](const std::string& device) { return device_to_json(find_device(device)); }, py::arg("device"),
      "The description of a known device, as the JSON that a file of one's own may hold.");
  m.def(
      "roofline_time_us",
      [](double flops, Bytes moved_bytes, const std::string& dtype, const std::string& device) {
        Op op;
        op.flops = flops;
        op.moved_bytes = moved_bytes;
        op.dtype = dtype;
        return roofline_time_us(op, find_device(device));
      },
      py::arg("flops"), py::arg("moved_bytes"), py::arg("dtype"), py::arg("device"));
  m.def(
      "apply_roofline",
      [](TrainingGraph& graph, const std::string& device) { graph = with_roofline_costs(graph, find_device(device)); },
      py::arg("graph"), py::arg("device"),
      "Price the graph's ops for a device: 'cpu', 'v100', 'a100', 'h100', 'h200', or the path of a JSON file.");
  m.def(
      "apply_uniform", [](TrainingGraph& graph) { graph = with_uniform_costs(graph); }, py::arg("graph"),
      "Let every op of the graph take 1 us.");
}

}  // namespace rockmate

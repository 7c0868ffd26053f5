#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>
#include <memory>
#include <stdexcept>

#include "rockmate/graph/file.h"
#include "rockmate/graph/json.h"

namespace py = pybind11;

namespace rockmate {
namespace {

void check_cost(double time_us, Bytes workspace_bytes) {
  if (!std::isfinite(time_us) || time_us < 0 || workspace_bytes < 0) {
    throw std::invalid_argument("[graph] a cost must be finite and not negative: got " + std::to_string(time_us) + " us and " +
                                std::to_string(workspace_bytes) + " bytes of workspace");
  }
}

template <typename T>
T& at(std::vector<T>& items, std::int32_t index) {
  if (index < 0 || static_cast<std::size_t>(index) >= items.size()) {
    throw py::index_error("index " + std::to_string(index) + " of " + std::to_string(items.size()));
  }
  return items[static_cast<std::size_t>(index)];
}

}  // namespace

void bind_graph(py::module_& m) {
  py::class_<Value>(m, "Value", "A storage: its size, kind and how long it must live. Read only.")
      .def_readonly("name", &Value::name)
      .def_readonly("bytes", &Value::bytes)
      .def_property_readonly(
          "kind", [](const Value& v) { return name_of(v.kind); }, "As in the JSON, e.g. 'activation'.")
      .def_property_readonly(
          "retention", [](const Value& v) { return name_of(v.retention); }, "'last_use', 'forward_end' or 'step_end'.")
      .def_readonly("producer", &Value::producer, "Index of the op that writes it, -1 for none.")
      .def_property_readonly("charged_bytes", &charged_bytes, "Bytes that it takes from the activation budget.");

  py::class_<Op>(m, "Op", "One operation of the step. Read only.")
      .def_readonly("name", &Op::name)
      .def_readonly("target", &Op::target)
      .def_readonly("signature", &Op::signature)
      .def_readonly("module", &Op::module)
      .def_property_readonly("is_forward", [](const Op& op) { return op.pass == Pass::kForward; })
      .def_readonly("inputs", &Op::inputs)
      .def_readonly("outputs", &Op::outputs)
      .def_readonly("time_us", &Op::time_us)
      .def_readonly("workspace_bytes", &Op::workspace_bytes)
      .def_readonly("flops", &Op::flops)
      .def_readonly("moved_bytes", &Op::moved_bytes)
      .def_readonly("dtype", &Op::dtype)
      .def_readonly("is_random", &Op::is_random)
      .def_readonly("recomputable", &Op::recomputable);

  py::class_<TrainingGraph>(m, "TrainingGraph", "A training step as ops and values (src/rockmate/graph/graph.h).")
      .def_static("from_json", &graph_from_json, py::arg("text"),
                  "The graph in the text (format: src/rockmate/graph/json.h). ValueError says where the text is wrong.")
      .def("to_json", &graph_to_json)
      .def_static(
          "load", [](const std::string& path) { return graph_from_json(read_file(path)); }, py::arg("path"))
      .def(
          "save", [](const TrainingGraph& g, const std::string& path) { write_file(path, graph_to_json(g)); }, py::arg("path"),
          "Write the graph; the file appears complete or not at all.")
      .def("copy", [](const TrainingGraph& g) { return std::make_unique<TrainingGraph>(g); })
      .def_readonly("name", &TrainingGraph::name)
      .def_readonly("device", &TrainingGraph::device)
      .def_readonly("rng_state_bytes", &TrainingGraph::rng_state_bytes)
      // Copies: a reference would not outlive a repricing, which replaces the ops.
      .def_property_readonly(
          "ops", [](const TrainingGraph& g) { return g.ops; }, "A copy of the ops, as a list.")
      .def_property_readonly(
          "values", [](const TrainingGraph& g) { return g.values; }, "A copy of the values, as a list.")
      .def_property_readonly("num_ops", &TrainingGraph::num_ops)
      .def_property_readonly("num_values", &TrainingGraph::num_values)
      .def_property_readonly("num_forward_ops", &num_forward_ops)
      .def(
          "set_op_cost",
          [](TrainingGraph& g, OpId index, double time_us, Bytes workspace_bytes) {
            check_cost(time_us, workspace_bytes);
            at(g.ops, index).time_us = time_us;
            at(g.ops, index).workspace_bytes = workspace_bytes;
          },
          py::arg("index"), py::arg("time_us"), py::arg("workspace_bytes"), "Give an op its measured cost.")
      .def(
          "set_value_bytes",
          [](TrainingGraph& g, ValueId index, Bytes bytes) {
            if (bytes < 0) throw std::invalid_argument("[graph] a value has at least 0 bytes, got " + std::to_string(bytes));
            at(g.values, index).bytes = bytes;
          },
          py::arg("index"), py::arg("bytes"), "Give a value its measured size.")
      .def("__repr__", [](const TrainingGraph& g) {
        return "<TrainingGraph '" + g.name + "' on " + g.device + ": " + std::to_string(num_forward_ops(g)) + " forward and " +
               std::to_string(g.num_ops() - num_forward_ops(g)) + " backward ops, " + std::to_string(g.num_values()) +
               " values>";
      });
}

}  // namespace rockmate

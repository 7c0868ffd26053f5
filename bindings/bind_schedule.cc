#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <utility>

#include "rockmate/graph/file.h"
#include "rockmate/schedule/budget.h"
#include "rockmate/schedule/json.h"
#include "rockmate/schedule/simulator.h"
#include "rockmate/schedule/verifier.h"

namespace py = pybind11;

namespace rockmate {
namespace {

using Pairs = std::vector<std::pair<std::string, std::int32_t>>;

Schedule schedule_from_pairs(const Pairs& actions, std::size_t forward_end) {
  Schedule schedule;
  schedule.forward_end = forward_end;
  for (const auto& [kind, id] : actions) {
    if (kind != "compute" && kind != "free") {
      throw std::invalid_argument("[schedule] an action is (\"compute\" or \"free\", id), got '" + kind + "'");
    }
    schedule.actions.push_back(kind == "compute" ? Action::compute(id) : Action::free(id));
  }
  return schedule;
}

Pairs pairs_of(const Schedule& schedule) {
  Pairs pairs;
  for (const Action& action : schedule.actions) {
    pairs.emplace_back(action.kind == Action::Kind::kCompute ? "compute" : "free", action.id);
  }
  return pairs;
}

// Python's bool is an int and its ints are unbounded: both are told apart here, before the C++ parser.
Bytes budget_from(const py::object& budget, Bytes store_all_peak_bytes) {
  if (py::isinstance<py::str>(budget)) return parse_budget(budget.cast<std::string>(), store_all_peak_bytes);
  if (py::isinstance<py::float_>(budget)) {
    // As a decimal with a point, so that 1e-05 is a share as well.
    return parse_budget(py::str("{:.17f}").format(budget).cast<std::string>(), store_all_peak_bytes);
  }
  const bool whole = py::hasattr(budget, "__index__") && !py::isinstance<py::bool_>(budget);
  if (!whole) {
    throw std::invalid_argument("[budget] expected an int (bytes), a float (share) or a str, got " +
                                py::repr(budget).cast<std::string>());
  }
  return parse_budget(py::str(py::module_::import("operator").attr("index")(budget)).cast<std::string>(), store_all_peak_bytes);
}

}  // namespace

void bind_schedule(py::module_& m) {
  py::class_<Schedule>(m, "Schedule", "The actions of one training step, in order (src/rockmate/schedule/schedule.h).")
      .def(py::init(&schedule_from_pairs), py::arg("actions"), py::arg("forward_end"))
      .def_property_readonly("actions", &pairs_of, "List of (\"compute\", op) and (\"free\", value).")
      .def_readonly("forward_end", &Schedule::forward_end, "actions[:forward_end] run in the forward pass.")
      .def_static("from_json", &schedule_from_json, py::arg("text"))
      .def("to_json", &schedule_to_json)
      .def_static(
          "load", [](const std::string& path) { return schedule_from_json(read_file(path)); }, py::arg("path"))
      .def(
          "save", [](const Schedule& s, const std::string& path) { write_file(path, schedule_to_json(s)); }, py::arg("path"))
      .def("__len__", [](const Schedule& s) { return s.actions.size(); })
      .def("__repr__", [](const Schedule& s) {
        return "<Schedule: " + std::to_string(s.actions.size()) + " actions, forward ends at " + std::to_string(s.forward_end) +
               ">";
      });

  py::class_<Simulation>(m, "Simulation", "What a schedule costs, byte by byte (src/rockmate/schedule/simulator.h).")
      .def_readonly("peak_bytes", &Simulation::peak_bytes)
      .def_readonly("peak_action", &Simulation::peak_action)
      .def_readonly("time_us", &Simulation::time_us)
      .def_readonly("recompute_time_us", &Simulation::recompute_time_us)
      .def_readonly("num_recomputed", &Simulation::num_recomputed)
      .def_readonly("bytes_inside", &Simulation::bytes_inside, "Bytes held while each action runs.")
      .def_readonly("bytes_after", &Simulation::bytes_after, "Bytes held after each action.")
      .def_property_readonly("overhead", &Simulation::overhead, "Time over the time with no recomputation, minus one.");

  m.def("schedule_from_sequence", &schedule_from_sequence, py::arg("graph"), py::arg("sequence"),
        "The schedule that computes these ops in this order and frees every value right after its last use.");
  m.def("without_dead_recomputations", &without_dead_recomputations, py::arg("graph"), py::arg("sequence"));
  m.def("store_all_sequence", &store_all_sequence, py::arg("graph"), "Every op once, in graph order.");
  m.def(
      "verify",
      [](const TrainingGraph& graph, const Schedule& schedule) -> std::optional<std::string> {
        if (auto fault = verify(graph, schedule)) return fault->message;
        return std::nullopt;
      },
      py::arg("graph"), py::arg("schedule"), "None for a good schedule, else a message that names its first fault.");
  m.def("simulate", &simulate, py::arg("graph"), py::arg("schedule"));
  m.def("alive_at", &alive_at, py::arg("graph"), py::arg("schedule"), py::arg("at"),
        "Charged values alive while action `at` runs, largest first.");
  m.def("parse_budget", &budget_from, py::arg("budget"), py::arg("store_all_peak_bytes"),
        "Bytes of a budget: int bytes, float share, or text such as '4GiB', '800MB', '50%', '0.5'.");
  m.def("format_bytes", &format_bytes, py::arg("bytes"));
}

}  // namespace rockmate

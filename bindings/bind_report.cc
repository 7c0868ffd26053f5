#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rockmate/report/comparison_page.h"
#include "rockmate/report/plan_page.h"

namespace py = pybind11;

namespace rockmate {

namespace {

std::string plan_report(const TrainingGraph& graph, const Schedule& schedule, Bytes budget_bytes,
                        const std::vector<std::pair<Bytes, double>>& curve, const std::string& note, double planners_seconds,
                        const std::optional<std::string>& measured) {
  PlanPageOptions options{.budget_bytes = budget_bytes, .note = note};
  for (const auto& [peak_bytes, overhead] : curve) options.curve.push_back({peak_bytes, overhead});
  if (measured) options.measured = measured_from_json(*measured);
  const py::gil_scoped_release no_gil;
  if (planners_seconds > 0) {
    options.planners = quick_planner_points(graph, planners_seconds, [] {
      const py::gil_scoped_acquire gil;
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      return true;
    });
  }
  return plan_page(graph, schedule, options);
}

}  // namespace

void bind_report(py::module_& m) {
  m.def("plan_report", &plan_report, py::arg("graph"), py::arg("schedule"), py::arg("budget_bytes") = 0,
        py::arg("curve") = std::vector<std::pair<Bytes, double>>{}, py::arg("note") = "", py::arg("planners_seconds") = 0.0,
        py::arg("measured") = py::none(),
        "One plan as a self-contained HTML page. curve: (peak_bytes, overhead) of all plans, ascending peak. planners_seconds: "
        "how long the quick planners may work for their points beside the curve; 0 for none. measured: what a run measured, as "
        "JSON (src/rockmate/report/measured.h).");
  m.def(
      "comparison_report", [](const std::string& json) { return comparison_page(comparison_from_json(json)); }, py::arg("json"),
      "Several runs as a self-contained HTML page. The text: {\"title\", \"subtitle\", \"columns\": [...], \"notes\": [...], "
      "\"runs\": [{\"label\", \"cells\": [one text per column], \"budget_bytes\", \"traces\": [{\"label\", \"bytes\": "
      "[...]}]}]}; "
      "all but runs may be left out. The last trace of each run is drawn in the common picture.");
}

}  // namespace rockmate

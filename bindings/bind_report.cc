#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <utility>

#include "rockmate/report/comparison_page.h"
#include "rockmate/report/plan_page.h"

namespace py = pybind11;

namespace rockmate {

void bind_report(py::module_& m) {
  m.def(
      "plan_report",
      [](const TrainingGraph& graph, const Schedule& schedule, Bytes budget_bytes,
         const std::vector<std::pair<Bytes, double>>& curve, const std::string& note) {
        PlanPageOptions options{.budget_bytes = budget_bytes, .curve = {}, .note = note};
        for (const auto& [peak_bytes, overhead] : curve) options.curve.push_back({peak_bytes, overhead});
        return plan_page(graph, schedule, options);
      },
      py::arg("graph"), py::arg("schedule"), py::arg("budget_bytes") = 0,
      py::arg("curve") = std::vector<std::pair<Bytes, double>>{}, py::arg("note") = "",
      "One plan as a self-contained HTML page. curve: (peak_bytes, overhead) of all plans, ascending peak.");
  m.def(
      "comparison_report", [](const std::string& json) { return comparison_page(comparison_from_json(json)); }, py::arg("json"),
      "Several runs as a self-contained HTML page. The text: {\"title\", \"subtitle\", \"columns\": [...], \"notes\": [...], "
      "\"runs\": [{\"label\", \"cells\": [one text per column], \"budget_bytes\", \"traces\": [{\"label\", \"bytes\": "
      "[...]}]}]}; "
      "all but runs may be left out. The last trace of each run is drawn in the common picture.");
}

}  // namespace rockmate

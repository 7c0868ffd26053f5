// rockmate._planner: everything after capture, for Python. Links no torch.
#include <pybind11/pybind11.h>

namespace rockmate {
void bind_graph(pybind11::module_& m);
void bind_schedule(pybind11::module_& m);
void bind_cost(pybind11::module_& m);
void bind_report(pybind11::module_& m);
void bind_planner(pybind11::module_& m);
}  // namespace rockmate

PYBIND11_MODULE(_planner, m) {
  m.doc() = "Graphs, costs, schedules, plans and reports: everything after capture. std::invalid_argument is ValueError.";
  rockmate::bind_graph(m);
  rockmate::bind_schedule(m);
  rockmate::bind_cost(m);
  rockmate::bind_report(m);
  rockmate::bind_planner(m);
}

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "rockmate/planner/planner.h"
#include "rockmate/planner/polish_plan.h"

namespace py = pybind11;

namespace rockmate {
namespace {

// What a progress call of the planner does in Python: signals first, then the user's function (stage, share) -> None or bool.
class PythonProgress {
 public:
  explicit PythonProgress(py::object on_progress) : on_progress_(std::move(on_progress)) {}

  bool operator()(const Progress& progress) {
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (on_progress_.is_none()) return true;
    const py::object go_on = on_progress_(progress.stage, progress.done);
    return go_on.is_none() || go_on.cast<bool>();
  }

 private:
  py::object on_progress_;
};

// Runs `work` with options that tell Python of the progress, while other Python threads go on.
template <typename Work>
auto watched_from_python(PlannerOptions options, py::object on_progress, const Work& work) {
  PythonProgress progress(std::move(on_progress));
  options.on_progress = std::ref(progress);
  try {
    const py::gil_scoped_release no_gil;
    return work(options);
  } catch (const Interrupted&) {
    PyErr_SetString(PyExc_KeyboardInterrupt, "planning was stopped");
    throw py::error_already_set();
  }
}

PlanCurve plan_from_python(const TrainingGraph& graph, const PlannerOptions& options, py::object on_progress) {
  return watched_from_python(options, std::move(on_progress),
                             [&](const PlannerOptions& its) { return plan_curve(graph, its); });
}

Plan polish_from_python(const TrainingGraph& graph, const PlanCurve& curve, Bytes budget_bytes, const PlannerOptions& options,
                        py::object on_progress) {
  return watched_from_python(options, std::move(on_progress),
                             [&](const PlannerOptions& its) { return polished_plan(graph, curve, budget_bytes, its); });
}

std::vector<std::pair<std::string, double>> stage_pairs(const PlanCurve& curve) {
  std::vector<std::pair<std::string, double>> pairs;
  for (const StageTime& time : curve.stages) pairs.emplace_back(time.stage, time.seconds);
  return pairs;
}

void bind_results(py::module_& m) {
  py::enum_<PlanStatus>(m, "PlanStatus")
      .value("OPTIMAL", PlanStatus::kOptimal)
      .value("FEASIBLE", PlanStatus::kFeasible)
      .value("TIME_LIMIT", PlanStatus::kTimeLimit);

  py::class_<Plan>(m, "Plan", "One schedule of the curve (src/rockmate/planner/planner.h).")
      .def_readonly("sequence", &Plan::sequence)
      .def_readonly("schedule", &Plan::schedule)
      .def_readonly("peak_bytes", &Plan::peak_bytes)
      .def_readonly("time_us", &Plan::time_us)
      .def_readonly("overhead", &Plan::overhead, "Time over the time with no recomputation, minus one.")
      .def_readonly("num_recomputed", &Plan::num_recomputed)
      .def_readonly("planner", &Plan::planner)
      .def("__repr__", [](const Plan& p) {
        return "<Plan: peak " + std::to_string(p.peak_bytes) + " bytes, " + std::to_string(p.num_recomputed) + " recomputed>";
      });

  py::class_<PlanCurve>(m, "PlanCurve", "All plans of a graph: ascending peak, descending time.")
      .def_readonly("plans", &PlanCurve::plans)
      .def_readonly("store_all_peak_bytes", &PlanCurve::store_all_peak_bytes)
      .def_readonly("store_all_time_us", &PlanCurve::store_all_time_us)
      .def_readonly("status", &PlanCurve::status)
      .def_readonly("num_blocks", &PlanCurve::num_blocks)
      .def_readonly("num_block_classes", &PlanCurve::num_block_classes)
      .def_readonly("has_chain", &PlanCurve::has_chain)
      .def_readonly("note", &PlanCurve::note)
      .def_property_readonly("stages", &stage_pairs, "List of (stage, seconds).")
      .def_property_readonly("min_budget_bytes", &PlanCurve::min_budget_bytes)
      .def("at", &PlanCurve::at, py::arg("budget_bytes"), py::return_value_policy::reference_internal,
           "The fastest plan within the budget, or None.")
      .def("__len__", [](const PlanCurve& c) { return c.plans.size(); });
}

}  // namespace

void bind_planner(py::module_& m) {
  py::class_<PlannerOptions>(m, "PlannerOptions", "Every field is explained in src/rockmate/planner/planner.h.")
      .def(py::init<>())
      .def_readwrite("save_levels", &PlannerOptions::save_levels)
      .def_readwrite("peak_levels", &PlannerOptions::peak_levels)
      .def_readwrite("memory_steps", &PlannerOptions::memory_steps)
      .def_readwrite("curve_points", &PlannerOptions::curve_points)
      .def_readwrite("threads", &PlannerOptions::threads)
      .def_readwrite("mip_gap", &PlannerOptions::mip_gap)
      .def_readwrite("time_limit_s", &PlannerOptions::time_limit_s)
      .def_readwrite("cache_dir", &PlannerOptions::cache_dir);

  bind_results(m);

  m.def("plan_curve", &plan_from_python, py::arg("graph"), py::arg("options") = PlannerOptions{},
        py::arg("on_progress") = py::none(),
        "Plans for every budget. on_progress(stage, share) is called often; returning False stops with KeyboardInterrupt.");
  m.def("polished_plan", &polish_from_python, py::arg("graph"), py::arg("curve"), py::arg("budget_bytes"),
        py::arg("options") = PlannerOptions{}, py::arg("on_progress") = py::none(),
        "The curve's plan within the budget, or a faster one (src/rockmate/planner/polish_plan.h).");
}

}  // namespace rockmate

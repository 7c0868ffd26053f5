// What the subcommands that plan have in common.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>

#include "cli/commands.h"
#include "rockmate/graph/file.h"
#include "rockmate/planners/planners.h"

namespace rockmate::cli {

// What `read` makes of the file's text. What is wrong with the file is told with its name.
template <class Read>
auto read_as(const std::string& path, const Read& read) {
  const std::string text = read_file(path);
  try {
    return read(text);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string(error.what()) + " (in '" + path + "')");
  }
}

// Reads the graph and prices it for the device, if one is named.
TrainingGraph load_graph(const std::string& path, const std::string& device);

// plan_curve with a progress bar on standard error when that is a terminal. Ctrl-C makes it return the plans found until then.
PlanCurve plan_with_progress(const TrainingGraph& graph, PlannerOptions options);

// run_planner with a progress bar, its stages named after `prefix`. Ctrl-C makes the planner return the best that it has.
PlannerResult run_with_progress(const PlannerEntry& planner, const TrainingGraph& graph, Bytes budget_bytes,
                                PlannerOptions options, const std::string& prefix = "");

// All that is known of a result: what `rockmate plan --json` prints. `plain` is the step without recomputation.
nlohmann::ordered_json to_json(const PlannerResult& result, const std::string& planner, Bytes budget_bytes, const Plan& plain);

// Tells on standard error that there is no plan, and what the least budget is.
void tell_infeasible(const PlannerResult& result, const std::string& planner, const std::string& budget, Bytes budget_bytes,
                     const Plan& plain);

// Makes Ctrl-C ask the planner to stop; the second one ends the program at once.
void catch_interrupt();
bool was_interrupted();

// The plan within the budget, or nullptr after telling on standard error what the least budget is.
const Plan* plan_within(const PlanCurve& curve, const std::string& budget, Bytes budget_bytes);

std::string status_name(PlanStatus status);

// All that is known of a curve: what `rockmate curve --json` prints.
nlohmann::ordered_json to_json(const PlanCurve& curve);

// Tells on standard error that Ctrl-C cut the work short.
int tell_interrupted();

}  // namespace rockmate::cli

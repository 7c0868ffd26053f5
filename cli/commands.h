// The subcommands as plain functions: settings in, exit code out. They print to standard output and throw
// std::invalid_argument for bad input, Interrupted after Ctrl-C; main.cc turns both into exit codes.
#pragma once

#include <string>

#include "rockmate/planner/planner.h"

namespace rockmate::cli {

enum ExitCode : int {
  kDone = 0,
  kInfeasible = 1,  // the budget can't be met, or the verifier refuses the schedule
  kBadInput = 2,
  kInterrupted = 130,
};

struct PlanSettings {
  std::string graph_path;
  std::string device;  // prices the graph by roofline; empty for the times in the file
  std::string planner_name = "auto";
  PlannerOptions planner;
  bool json = false;
};

// The plan for one budget; the schedule goes to `output_path` unless that is empty.
int plan(const PlanSettings& settings, const std::string& budget, const std::string& output_path);

// Every plan of the graph: what each budget costs.
int curve(const PlanSettings& settings);

// Several planners on several budgets of one graph, side by side. Both lists are separated by commas; no planners are all of
// them. The time limit is for each pair. Ctrl-C ends it with what is done by then.
int compare(const PlanSettings& settings, const std::string& budgets, const std::string& planners);

struct SimulateSettings {
  std::string graph_path, schedule_path, device;
  bool json = false;
  bool trace = false;  // every action with its bytes
};

int simulate(const SimulateSettings& settings);

// Reads a published graph (NetworkX node-link JSON) and writes it in our format.
int import_graph(const std::string& path, const std::string& output_path);

// What is in a file: a graph or a schedule.
int show(const std::string& path, bool json);

// Writes the HTML page of a plan: of the given schedule, else planned for the budget, else without recomputation.
int report(const PlanSettings& settings, const std::string& schedule_path, const std::string& budget,
           const std::string& output_path);

}  // namespace rockmate::cli

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
  kInterrupted = 130,  // Ctrl-C; what was found by then is printed and written
};

struct PlanSettings {
  std::string graph_path;
  std::string device;  // prices the graph by roofline; empty for the times in the file
  std::string planner_name = "auto";
  PlannerOptions planner;
  bool json = false;
};

// The plan for one budget; the schedule goes to `output_path` unless that is empty. After Ctrl-C the best plan until then.
int plan(const PlanSettings& settings, const std::string& budget, const std::string& output_path);

// Every plan of the graph: what each budget costs. The figures go to `output_path` as JSON unless that is empty.
int curve(const PlanSettings& settings, const std::string& output_path);

struct CompareSettings {
  PlanSettings planning;  // its planner_name is not used; the time limit is for each pair
  std::string budgets = "90%,80%,70%,60%,50%,40%,30%,20%,10%";
  std::string planners;  // empty for all of them
  std::string output_path, html_path;
};

// Several planners on several budgets of one graph, side by side. Both lists are separated by commas. Ctrl-C ends it with what
// is done by then. The figures go to `output_path` as JSON and to `html_path` as a page unless those are empty.
int compare(const CompareSettings& settings);

struct SimulateSettings {
  std::string graph_path, schedule_path, device;
  bool json = false;
  bool trace = false;  // every action with its bytes
};

int simulate(const SimulateSettings& settings);

// Reads a published graph (NetworkX node-link JSON) and writes it in our format.
int import_graph(const std::string& path, const std::string& output_path, bool json);

// What is in a file: a graph or a schedule.
int show(const std::string& path, bool json);

struct ReportSettings {
  PlanSettings planning;
  std::string schedule_path;  // empty: planned for the budget, or without recomputation where there is no budget
  std::string budget;         // may be empty
  std::string curve_path, compare_path, measured_path;  // files to show; the first two are computed where they are empty
  bool with_curve = true, with_planners = true;
  double planners_seconds = 10;  // for the quick planners together
  std::string output_path;
};

// Writes a plan as one HTML page.
int report(const ReportSettings& settings);

}  // namespace rockmate::cli

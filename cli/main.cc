#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "cli/planning.h"

namespace {

using namespace rockmate;
using namespace rockmate::cli;

constexpr const char* kBudgetHelp =
    "Activation budget: bytes (800000000), a size (800MB, 4GiB) or a share of the plain peak (50%, 0.5)";
constexpr const char* kDeviceHelp =
    "Price the graph by roofline for cpu, v100, a100, h100, h200 or a device file (.json), instead of the times in it";

void add_planner_options(CLI::App* command, PlanSettings& settings,
                         const char* time_limit_help = "Seconds for all solvers together") {
  PlannerOptions& planner = settings.planner;
  command->add_option("GRAPH", settings.graph_path, "Graph file (rockmate-graph JSON)")->required();
  command->add_option("--device", settings.device, kDeviceHelp);
  command->add_option("--save-levels", planner.save_levels, "Levels of kept bytes in a block's options, 2 to 30")
      ->capture_default_str();
  command->add_option("--peak-levels", planner.peak_levels, "Levels of peak in a block's options, 2 to 30")
      ->capture_default_str();
  command->add_option("--memory-steps", planner.memory_steps, "Resolution of the chain's memory axis, 500 or more")
      ->capture_default_str();
  command->add_option("--points", planner.curve_points, "Budgets at which plans are made")->capture_default_str();
  command->add_option("--threads", planner.threads, "Solver threads, 0 for all cores")->capture_default_str();
  command->add_option("--time-limit", planner.time_limit_s, time_limit_help)->capture_default_str();
  command->add_option("--polish", planner.polish_s,
                      "Seconds in which planner auto polishes; the time limit where one is given");
  command->add_option("--cache", planner.cache_dir, "Folder that keeps solved blocks between runs");
}

// Who gives a time limit wants it used.
void polish_until_limit(const CLI::App* command, PlanSettings& settings) {
  if (command->count("--time-limit") > 0 && command->count("--polish") == 0) {
    settings.planner.polish_s = settings.planner.time_limit_s;
  }
}

int run(int argc, char** argv) {
  CLI::App app{"Plans which activations of a training step to keep and which to recompute, so that it fits a memory budget."};
  app.footer("Exit status: 0 done, 1 the budget can't be met or the schedule is refused, 2 bad input, 130 interrupted.");
  app.set_version_flag("--version", "rockmate " ROCKMATE_VERSION);
  app.require_subcommand(1);

  PlanSettings settings;
  std::string budget, output, schedule, shown;
  PlanSettings comparison;
  comparison.planner.time_limit_s = 30;
  std::string budgets = "90%,80%,70%,60%,50%,40%,30%,20%,10%", compared;
  int status = kDone;

  CLI::App* plan_command = app.add_subcommand("plan", "Plan a graph for one budget");
  add_planner_options(plan_command, settings);
  plan_command->add_option("-b,--budget", budget, kBudgetHelp)->required();
  std::string names;
  for (const PlannerEntry& planner : planners()) {
    const std::string paper = *planner.paper ? std::string(" (") + planner.paper + ")" : "";
    names += std::string("\n  ") + planner.name + ": " + planner.what + paper;
  }
  plan_command->add_option("-p,--planner", settings.planner_name, "Which planner:" + names)->capture_default_str();
  plan_command->add_option("-o,--output", output, "Write the schedule to this file");
  plan_command->add_flag("--json", settings.json, "Print the figures as JSON");
  plan_command->callback([&] {
    polish_until_limit(plan_command, settings);
    status = plan(settings, budget, output);
  });

  CLI::App* compare_command = app.add_subcommand("compare", "Planners side by side: the overhead of each at each budget");
  add_planner_options(compare_command, comparison, "Seconds for each pair of planner and budget");
  compare_command->add_option("--budgets", budgets, "Budgets, separated by commas")->capture_default_str();
  compare_command->add_option("--planners", compared, "Planners, separated by commas; without it all of them");
  compare_command->add_flag("--json", comparison.json, "Print all figures of each pair as JSON");
  compare_command->callback([&] {
    polish_until_limit(compare_command, comparison);
    status = compare(comparison, budgets, compared);
  });

  CLI::App* import_command = app.add_subcommand("import", "Read a published graph (NetworkX node-link JSON)");
  import_command->add_option("FILE", shown, "Graph in node-link form")->required();
  import_command->add_option("-o,--output", output, "Graph file to write (rockmate-graph JSON)")->required();
  import_command->callback([&] { status = import_graph(shown, output); });

  CLI::App* curve_command = app.add_subcommand("curve", "What every budget costs");
  add_planner_options(curve_command, settings);
  curve_command->add_flag("--json", settings.json, "Print the figures as JSON");
  curve_command->callback([&] { status = curve(settings); });

  SimulateSettings simulation;
  CLI::App* simulate_command = app.add_subcommand("simulate", "Verify a schedule and tell its memory and time");
  simulate_command->add_option("GRAPH", simulation.graph_path, "Graph file")->required();
  simulate_command->add_option("SCHEDULE", simulation.schedule_path, "Schedule file")->required();
  simulate_command->add_option("--device", simulation.device, kDeviceHelp);
  simulate_command->add_flag("--trace", simulation.trace, "Tell every action with its bytes");
  simulate_command->add_flag("--json", simulation.json, "Print the figures as JSON");
  simulate_command->callback([&] { status = simulate(simulation); });

  CLI::App* show_command = app.add_subcommand("show", "What is in a graph or schedule file");
  show_command->add_option("FILE", shown, "Graph or schedule file")->required();
  show_command->add_flag("--json", settings.json, "Print the figures as JSON");
  show_command->callback([&] { status = show(shown, settings.json); });

  CLI::App* report_command = app.add_subcommand("report", "Write a plan as one HTML page");
  add_planner_options(report_command, settings);
  report_command->add_option("SCHEDULE", schedule, "Schedule file; without one the graph is planned for the budget");
  report_command->add_option("-b,--budget", budget, kBudgetHelp);
  report_command->add_option("-o,--output", output, "HTML file to write")->required();
  report_command->callback([&] { status = report(settings, schedule, budget, output); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are no errors; whatever else the command line lacks is bad input.
    return app.exit(error) == 0 ? kDone : kBadInput;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  catch_interrupt();
  const auto interrupted = [] {
    std::fputs("interrupted\n", stderr);
    return kInterrupted;
  };
  try {
    return run(argc, argv);
  } catch (const Interrupted&) {
    return interrupted();
  } catch (const std::exception& error) {
    if (was_interrupted()) return interrupted();  // a read that the signal broke off
    std::fprintf(stderr, "%s\n", error.what());
    return kBadInput;
  }
}

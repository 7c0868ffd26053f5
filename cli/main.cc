#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "cli/planning.h"

namespace {

using namespace rockmate;
using namespace rockmate::cli;

constexpr const char* kBudgetHelp =
    "Activation budget: bytes (800000000), a size (800MB, 4GiB) or a share of the plain peak (50%, 0.5)";
constexpr const char* kDeviceHelp =
    "Price the graph by roofline for cpu, v100, a100, h100, h200 or a device file (.json), instead of the times in it";

// CLI11's own checks name the range by the largest double, written out.
std::string above_zero(const std::string& text) {
  const double seconds = std::strtod(text.c_str(), nullptr);
  return seconds > 0 ? "" : "'" + text + "' is no number of seconds above 0";
}

std::string zero_or_more(const std::string& text) { return text == "0" ? "" : above_zero(text); }

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
  command->add_option("--time-limit", planner.time_limit_s, time_limit_help)->capture_default_str()->check(above_zero);
  command->add_option("--polish", planner.polish_s, "Seconds in which planner auto polishes; the time limit where one is given")
      ->check(zero_or_more);
  command->add_option("--cache", planner.cache_dir, "Folder that keeps solved blocks between runs");
}

// Who gives a time limit wants it used.
void polish_until_limit(const CLI::App* command, PlanSettings& settings) {
  if (command->count("--time-limit") > 0 && command->count("--polish") == 0) {
    settings.planner.polish_s = settings.planner.time_limit_s;
  }
}

constexpr const char* kExitStatus =
    "Exit status: 0 done; 1 the budget can't be met, or the schedule is refused; 2 bad usage or input; 130 ended by "
    "Ctrl-C, with what was found by then printed and written.";

// Examples, then what the exit status means.
void add_footer(CLI::App* command, const std::string& examples) {
  command->footer("Examples:\n" + examples + "\n" + kExitStatus);
}

std::string planner_names() {
  std::string names;
  for (const PlannerEntry& planner : planners()) {
    const std::string paper = *planner.paper ? std::string(" (") + planner.paper + ")" : "";
    names += std::string("\n  ") + planner.name + ": " + planner.what + paper;
  }
  return names;
}

void add_plan(CLI::App& app, PlanSettings& settings, std::string& budget, std::string& output, int& status) {
  CLI::App* command = app.add_subcommand("plan", "Plan a graph for one budget");
  add_planner_options(command, settings);
  command->add_option("-b,--budget", budget, kBudgetHelp)->required();
  command->add_option("-p,--planner", settings.planner_name, "Which planner:" + planner_names())->capture_default_str();
  command->add_option("-o,--output", output, "Write the schedule to this file");
  command->add_flag("--json", settings.json, "Print the figures as JSON");
  command->callback([&settings, &budget, &output, &status, command] {
    polish_until_limit(command, settings);
    status = plan(settings, budget, output);
  });
  add_footer(command,
             "  rockmate plan graph.json --budget 40% --output schedule.json\n"
             "  rockmate plan graph.json -b 4GiB --planner rotor --json\n"
             "  rockmate plan graph.json -b 50% --time-limit 60      search on for a minute; Ctrl-C takes the best until then\n"
             "  rockmate plan graph.json -b 50% --device h100        op times of another device\n");
}

void add_compare(CLI::App& app, CompareSettings& settings, int& status) {
  CLI::App* command = app.add_subcommand("compare", "Planners side by side: the overhead of each at each budget");
  settings.planning.planner.time_limit_s = 30;
  add_planner_options(command, settings.planning, "Seconds for each pair of planner and budget");
  command->add_option("--budgets", settings.budgets, "Budgets, separated by commas")->capture_default_str();
  command->add_option("--planners", settings.planners,
                      "Planners, separated by commas; without it all of them:" + planner_names());
  command->add_option("-o,--output", settings.output_path, "Write all figures of each pair to this file, as JSON");
  command->add_option("--html", settings.html_path, "Write picture and table to this HTML file");
  command->add_flag("--json", settings.planning.json, "Print all figures of each pair as JSON");
  command->callback([&settings, &status, command] {
    polish_until_limit(command, settings.planning);
    status = compare(settings);
  });
  add_footer(command,
             "  rockmate compare graph.json --budgets 80%,50%,30% --planners rotor,dtr,auto --time-limit 10\n"
             "  rockmate compare graph.json --output compare.json --html compare.html\n");
}

void add_curve(CLI::App& app, PlanSettings& settings, std::string& output, int& status) {
  CLI::App* command = app.add_subcommand("curve", "What every budget costs");
  add_planner_options(command, settings);
  command->add_option("-o,--output", output, "Write the figures to this file, as JSON");
  command->add_flag("--json", settings.json, "Print the figures as JSON");
  command->callback([&] { status = curve(settings, output); });
  add_footer(command,
             "  rockmate curve graph.json\n"
             "  rockmate curve graph.json --device a100 --output curve.json\n");
}

void add_simulate(CLI::App& app, SimulateSettings& settings, int& status) {
  CLI::App* command = app.add_subcommand("simulate", "Verify a schedule and tell its memory and time");
  command->add_option("GRAPH", settings.graph_path, "Graph file")->required();
  command->add_option("SCHEDULE", settings.schedule_path, "Schedule file")->required();
  command->add_option("--device", settings.device, kDeviceHelp);
  command->add_flag("--trace", settings.trace, "Tell every action with its bytes");
  command->add_flag("--json", settings.json, "Print the figures as JSON");
  command->callback([&] { status = simulate(settings); });
  add_footer(command,
             "  rockmate simulate graph.json schedule.json\n"
             "  rockmate simulate graph.json schedule.json --trace --json\n");
}

void add_report(CLI::App& app, ReportSettings& settings, int& status) {
  CLI::App* command = app.add_subcommand("report", "Write a plan as one HTML page that needs no network");
  settings.planning.planner.time_limit_s = 60;
  add_planner_options(command, settings.planning, "Seconds for the curve");
  command->add_option("SCHEDULE", settings.schedule_path,
                      "Schedule file; without one the graph is planned for the budget, without a budget nothing is recomputed");
  command->add_option("-b,--budget", settings.budget, kBudgetHelp);
  command->add_option("-o,--output", settings.output_path, "HTML file to write")->required();
  CLI::Option* curve =
      command->add_option("--curve", settings.curve_path, "Show this curve (curve --json) instead of a new one");
  command->add_option("--compare", settings.compare_path,
                      "Show the planners of this file (compare --json) instead of the quick ones");
  command->add_option("--measured", settings.measured_path, "Show what was measured beside what is predicted (JSON)");
  command->add_option("--planners-time", settings.planners_seconds, "Seconds for the quick planners together")
      ->capture_default_str()
      ->check(above_zero);
  command
      ->add_flag_callback(
          "--no-curve", [&settings] { settings.with_curve = false; }, "Leave the curve out")
      ->excludes(curve);
  command->add_flag_callback(
      "--no-planners", [&settings] { settings.with_planners = false; }, "Leave the other planners out");
  command->add_flag("--json", settings.planning.json, "Print what the page shows as JSON");
  command->callback([&] { status = report(settings); });
  add_footer(command,
             "  rockmate report graph.json schedule.json -b 4GiB -o plan.html\n"
             "  rockmate report graph.json -b 50% -o plan.html\n"
             "  rockmate report graph.json schedule.json --curve curve.json --compare compare.json --measured run.json -o "
             "plan.html\n");
}

// Throws std::invalid_argument where the first word is no command.
void check_command(const CLI::App& app, int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word.starts_with('-')) return;
  std::string names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == word) return;
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  throw std::invalid_argument((word.empty() ? "[rockmate] no command is given" : "[rockmate] '" + word + "' is no command") +
                              "; choose one of " + names + ", or ask rockmate --help");
}

int run(int argc, char** argv) {
  CLI::App app{"Plans which activations of a training step to keep and which to recompute, so that it fits a memory budget.",
               "rockmate"};
  app.set_version_flag("--version", "rockmate " ROCKMATE_VERSION);
  app.require_subcommand(1);
  add_footer(&app,
             "  rockmate show graph.json                             what is in a graph (saved by plan.save in Python)\n"
             "  rockmate curve graph.json                            what every budget costs\n"
             "  rockmate plan graph.json -b 50% -o schedule.json     a plan for one budget\n"
             "  rockmate report graph.json schedule.json -o p.html   the plan as a page\n"
             "  rockmate COMMAND --help                              more on each\n");

  PlanSettings settings;
  CompareSettings comparison;
  SimulateSettings simulation;
  ReportSettings page;
  std::string budget, output, shown;
  int status = kDone;
  add_plan(app, settings, budget, output, status);
  add_compare(app, comparison, status);
  add_curve(app, settings, output, status);
  add_simulate(app, simulation, status);

  CLI::App* show_command = app.add_subcommand("show", "What is in a graph or schedule file");
  show_command->add_option("FILE", shown, "Graph or schedule file")->required();
  show_command->add_flag("--json", settings.json, "Print the figures as JSON");
  show_command->callback([&] { status = show(shown, settings.json); });
  add_footer(show_command, "  rockmate show graph.json\n");

  add_report(app, page, status);

  CLI::App* import_command = app.add_subcommand("import", "Read a published graph (NetworkX node-link JSON)");
  import_command->add_option("FILE", shown, "Graph in node-link form")->required();
  import_command->add_option("-o,--output", output, "Graph file to write (rockmate-graph JSON)")->required();
  import_command->add_flag("--json", settings.json, "Print what is in the graph as JSON");
  import_command->callback([&] { status = import_graph(shown, output, settings.json); });
  add_footer(import_command, "  rockmate import published.json -o graph.json\n");

  check_command(app, argc, argv);
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

// rockmate compare: planners side by side.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "cli/planning.h"
#include "rockmate/graph/file.h"
#include "rockmate/planner/judge.h"
#include "rockmate/report/planners_page.h"
#include "rockmate/schedule/budget.h"

namespace rockmate::cli {
namespace {

using nlohmann::ordered_json;

constexpr int kColumn = 9;

std::vector<std::string> split(const std::string& text, const char* option) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    if (part.empty())
      throw std::invalid_argument(std::string("[compare] there is an empty entry in ") + option + ", drop a comma");
    parts.push_back(part);
  }
  return parts;
}

struct Row {
  const PlannerEntry* planner;
  std::vector<PlannerResult> results;  // by budget; fewer when interrupted
};

std::string cell(const PlannerResult& result) {
  if (!result.plan) return result.status == PlannerStatus::kTimeLimit ? "time" : "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f%%%s", 100 * result.plan->overhead,
                result.status == PlannerStatus::kOptimal ? "*" : " ");
  return text;
}

void print_line(const std::string& first, const std::vector<std::string>& cells, const std::string& last) {
  std::printf("%-16s", first.c_str());
  for (const std::string& text : cells) std::printf(" %*s", kColumn, text.c_str());
  std::printf(" %*s\n", kColumn, last.c_str());
  std::fflush(stdout);
}

void print_row(const Row& row, std::size_t num_budgets) {
  std::vector<std::string> cells;
  double seconds = 0;
  for (const PlannerResult& result : row.results) {
    cells.push_back(cell(result));
    seconds += result.plan_seconds;
  }
  cells.resize(num_budgets);
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", seconds);
  print_line(row.planner->name, cells, text);
}

// What no schedule goes below, by the best bound of any planner.
std::vector<std::string> bounds(const std::vector<Row>& rows, std::size_t num_budgets) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < num_budgets; ++i) {
    double bound = 0, least = std::numeric_limits<double>::infinity();
    for (const Row& row : rows) {
      if (i >= row.results.size()) continue;
      bound = std::max(bound, row.results[i].lower_bound);
      if (row.results[i].plan) least = std::min(least, row.results[i].plan->overhead);
    }
    char text[32];
    std::snprintf(text, sizeof text, "%.2f%% ", 100 * std::min(bound, least));
    cells.push_back(std::isfinite(std::min(bound, least)) ? text : "-");
  }
  return cells;
}

std::string page(const TrainingGraph& graph, const Plan& plain, const std::vector<std::string>& budgets,
                 const std::vector<Row>& rows) {
  PlannersPage page;
  page.title = graph.name.empty() ? "Planners" : "Planners on " + graph.name;
  page.store_all_peak_bytes = plain.peak_bytes;
  page.store_all_time_us = plain.time_us;
  page.budgets = budgets;
  page.bounds = bounds(rows, budgets.size());
  for (const Row& row : rows) {
    PlannersPage::Row& shown = page.rows.emplace_back();
    shown.points.planner = row.planner->name;
    for (const PlannerResult& result : row.results) {
      shown.cells.push_back(cell(result));
      shown.plan_seconds += result.plan_seconds;
      if (result.plan) shown.points.points.push_back({result.plan->peak_bytes, result.plan->overhead, row.planner->name});
    }
  }
  return planners_page(page);
}

}  // namespace

int compare(const CompareSettings& asked) {
  const PlanSettings& settings = asked.planning;
  const std::vector<std::string> budget_texts = split(asked.budgets, "--budgets");
  for (const std::string& text : budget_texts) parse_budget(text, 1);
  if (budget_texts.empty()) throw std::invalid_argument("[compare] --budgets is empty, give at least one, e.g. 50%");
  std::vector<const PlannerEntry*> chosen;
  for (const std::string& name : split(asked.planners, "--planners")) chosen.push_back(&find_planner(name));
  if (chosen.empty()) {
    for (const PlannerEntry& planner : planners()) chosen.push_back(&planner);
  }

  const TrainingGraph graph = load_graph(settings.graph_path, settings.device);
  const Plan plain = *judged_plan(graph, store_all_sequence(graph), "store-all");
  if (!settings.json) {
    std::printf("%s: %s, %.3f ms without recomputation\n", (graph.name.empty() ? settings.graph_path : graph.name).c_str(),
                format_bytes(plain.peak_bytes).c_str(), plain.time_us / 1e3);
    print_line("overhead at", budget_texts, "planning");
  }
  ordered_json document = {{"graph", graph.name},
                           {"store_all_peak_bytes", plain.peak_bytes},
                           {"store_all_time_us", plain.time_us},
                           {"complete", true},
                           {"results", ordered_json::array()}};
  std::vector<Row> rows;
  for (const PlannerEntry* planner : chosen) {
    if (was_interrupted()) break;
    Row& row = rows.emplace_back(Row{planner, {}});
    for (const std::string& text : budget_texts) {
      if (was_interrupted()) break;
      const Bytes budget_bytes = parse_budget(text, plain.peak_bytes);
      const std::string prefix = std::string(planner->name) + " " + text + " ";
      PlannerResult result = run_with_progress(*planner, graph, budget_bytes, settings.planner, prefix);
      if (was_interrupted() && !result.plan) break;
      document["results"].push_back(to_json(result, planner->name, budget_bytes, plain));
      row.results.push_back(std::move(result));
    }
    if (!settings.json && !row.results.empty()) print_row(row, budget_texts.size());
  }
  document["complete"] = !was_interrupted();
  if (!asked.output_path.empty()) write_file(asked.output_path, document.dump(2) + "\n");
  if (!asked.html_path.empty()) write_file(asked.html_path, page(graph, plain, budget_texts, rows));
  if (settings.json) {
    std::printf("%s\n", document.dump(2).c_str());
  } else {
    print_line("no schedule below", bounds(rows, budget_texts.size()), "");
    std::printf("* proved the best of its kind;  - no plan within the budget;  time: none within the time limit\n");
  }
  return was_interrupted() ? tell_interrupted() : kDone;
}

}  // namespace rockmate::cli

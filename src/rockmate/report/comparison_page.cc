#include "rockmate/report/comparison_page.h"

#include "rockmate/graph/json_reader.h"
#include "rockmate/report/chart.h"
#include "rockmate/report/page.h"
#include "rockmate/schedule/budget.h"

namespace rockmate {
namespace {

using nlohmann::json;

// Runs differ in how many events they have: each is drawn over the share of its own.
Series series_of(const RunTrace& trace, Series style) {
  const double last = trace.bytes.size() > 1 ? static_cast<double>(trace.bytes.size() - 1) : 1;
  for (std::size_t i = 0; i < trace.bytes.size(); ++i) {
    style.points.push_back({static_cast<double>(i) / last, static_cast<double>(trace.bytes[i])});
  }
  return style;
}

Chart empty_chart(const std::string& summary) {
  Chart chart;
  chart.x_label = "share of the step's events";
  chart.x_axis = Axis::kShare;
  chart.summary = summary;
  return chart;
}

std::string common_picture(const Comparison& comparison) {
  Chart chart = empty_chart("Memory over the step, all runs");
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const Run& run = comparison.runs[i];
    if (run.traces.empty()) continue;
    chart.series.push_back(
        series_of(run.traces.back(), {.label = run.label, .color = static_cast<int>(i), .stepped = true, .dashed = i >= 8}));
  }
  return chart.series.empty() ? "" : section("Memory over the step", chart_figure(chart));
}

std::string own_picture(const Run& run, int color) {
  Chart chart = empty_chart("Memory over the step: " + run.label);
  for (std::size_t i = 0; i < run.traces.size(); ++i) {
    const bool last = i + 1 == run.traces.size();
    chart.series.push_back(
        series_of(run.traces[i],
                  {.label = run.traces[i].label, .color = last ? color : 7, .stepped = true, .filled = last, .dashed = !last}));
  }
  if (run.budget_bytes > 0) {
    chart.horizontal.push_back({"budget " + format_bytes(run.budget_bytes), static_cast<double>(run.budget_bytes)});
  }
  return section(run.label, chart_figure(chart));
}

Run run_from(const json& object, const JsonPlace& place, std::size_t columns) {
  JsonFields fields(object, place);
  Run run;
  fields.read("label", run.label);
  fields.read("cells", run.cells);
  fields.read("budget_bytes", run.budget_bytes);
  if (run.cells.size() != columns) {
    place.in("cells").fail("expected " + std::to_string(columns) + ", one for each column, found " +
                           std::to_string(run.cells.size()));
  }
  if (object.contains("traces")) {
    const json& traces = fields.array("traces");
    for (std::size_t i = 0; i < traces.size(); ++i) {
      JsonFields trace_fields(traces[i], place.in("traces").at(i));
      RunTrace trace;
      trace_fields.read("label", trace.label);
      trace_fields.read("bytes", trace.bytes);
      trace_fields.finish();
      run.traces.push_back(std::move(trace));
    }
  }
  fields.finish();
  return run;
}

}  // namespace

std::string comparison_page(const Comparison& comparison) {
  Table table;
  table.columns = comparison.columns;
  table.columns.insert(table.columns.begin(), "");
  std::string pictures;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const Run& run = comparison.runs[i];
    table.rows.push_back(run.cells);
    table.rows.back().insert(table.rows.back().begin(), run.label);
    if (!run.traces.empty()) pictures += own_picture(run, static_cast<int>(i));
  }
  std::string notes;
  for (const std::string& note : comparison.notes) notes += "<p class=\"note\">" + escaped(note) + "</p>\n";
  return html_page(comparison.title, comparison.subtitle,
                   section("Runs", html_table(table) + notes) + common_picture(comparison) + "<div class=\"pair\">\n" +
                       pictures + "</div>\n");
}

Comparison comparison_from_json(const std::string& text) {
  const JsonPlace top{"report", ""};
  const json document = parse_json(text, "report");
  JsonFields fields(document, top);
  Comparison comparison;
  fields.read("title", comparison.title);
  fields.read("subtitle", comparison.subtitle);
  fields.read("columns", comparison.columns);
  fields.read("notes", comparison.notes);
  const json& runs = fields.array("runs");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    comparison.runs.push_back(run_from(runs[i], top.in("runs").at(i), comparison.columns.size()));
  }
  fields.finish();
  return comparison;
}

}  // namespace rockmate

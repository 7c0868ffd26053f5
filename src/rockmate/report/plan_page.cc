#include "rockmate/report/plan_page.h"

#include <algorithm>
#include <cmath>

#include "rockmate/report/block_sections.h"
#include "rockmate/report/chart.h"
#include "rockmate/report/clock.h"
#include "rockmate/report/page.h"
#include "rockmate/report/planner_chart.h"
#include "rockmate/report/summary.h"
#include "rockmate/report/texts.h"
#include "rockmate/schedule/budget.h"
#include "rockmate/schedule/simulator.h"

namespace rockmate {
namespace {

// While an op runs the curve shows the bytes inside it, then the bytes it leaves.
Series memory_over_time(const TrainingGraph& graph, const Schedule& schedule, const Simulation& simulation, Series style) {
  const Clock clock(graph, schedule);
  double x = 0;
  for (std::size_t at = 0; at < schedule.actions.size(); ++at) {
    const double step = clock.step(schedule.actions[at]);
    if (schedule.actions[at].kind == Action::Kind::kCompute) {
      style.points.push_back({x, static_cast<double>(simulation.bytes_inside[at])});
      style.points.push_back({x + step, static_cast<double>(simulation.bytes_inside[at])});
    }
    x += step;
    style.points.push_back({x, static_cast<double>(simulation.bytes_after[at])});
  }
  return style;
}

std::string budget_label(Bytes budget_bytes) { return "budget " + format_bytes(budget_bytes); }

Chart memory_chart(const TrainingGraph& graph, const Schedule& schedule, const Simulation& simulation,
                   const PlanPageOptions& options) {
  const Schedule store_all = schedule_from_sequence(graph, store_all_sequence(graph));
  const Clock clock(graph, schedule);
  Chart chart;
  chart.x_label = clock.label();
  chart.summary = "Memory over time of the plan, next to the step without recomputation";
  if (simulation.num_recomputed > 0) {
    chart.series.push_back(memory_over_time(graph, store_all, simulate(graph, store_all),
                                            {.label = "without recomputation", .color = 7, .dashed = true}));
  }
  chart.series.push_back(memory_over_time(graph, schedule, simulation, {.label = "this plan", .color = 0, .filled = true}));
  if (options.budget_bytes > 0) {
    chart.horizontal.push_back({budget_label(options.budget_bytes), static_cast<double>(options.budget_bytes)});
  }
  const double boundary = clock.forward_end(), end = clock.end();
  if (boundary > 0 && boundary < end) {
    const auto named = [&](const char* pass, double length) {
      return clock.is_timed() ? std::string(pass) + " " + duration(length * 1e3) : std::string(pass);
    };
    chart.bands = {{named("forward", boundary), 0, boundary}, {named("backward", end - boundary), boundary, end}};
  }
  return chart;
}

Section curve_section(const Simulation& simulation, const PlanPageOptions& options) {
  if (options.curve.empty() && options.planners.empty()) return {};
  PlannerChart chart;
  chart.is_first_filled = !options.curve.empty();
  if (!options.curve.empty()) chart.lines.push_back({"plans of this model", options.curve});
  chart.lines.insert(chart.lines.end(), options.planners.begin(), options.planners.end());
  chart.budget_bytes = options.budget_bytes;
  chart.chosen = CurvePoint{simulation.peak_bytes, simulation.overhead()};
  std::string body = planner_figure(chart);
  if (!options.curve.empty()) {
    Table table;
    table.columns = {"peak", "overhead", "planner"};
    for (const CurvePoint& point : options.curve) {
      table.rows.push_back({format_bytes(point.peak_bytes), percent(point.overhead), point.planner});
    }
    if (std::none_of(options.curve.begin(), options.curve.end(), [](const CurvePoint& p) { return !p.planner.empty(); })) {
      table.columns.pop_back();
      for (auto& row : table.rows) row.pop_back();
    }
    const std::size_t count = options.curve.size();
    body += folded(std::to_string(count) + (count == 1 ? " plan" : " plans") + " in figures", html_table(table));
  }
  return {"What other budgets would cost", body};
}

std::string difference(double predicted, double measured) {
  if (measured == predicted) return "equal";
  if (predicted <= 0) return "";
  const double share = measured / predicted - 1;
  return std::string(share > 0 ? "+" : "−") + (std::abs(share) < 0.0005 ? "< 0.1%" : percent(std::abs(share)));
}

// Events of a measurement carry no time: both curves are drawn over the share of their own events.
Series over_events(const std::vector<Bytes>& bytes, Series style) {
  const double last = bytes.size() > 1 ? static_cast<double>(bytes.size() - 1) : 1;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    style.points.push_back({static_cast<double>(i) / last, static_cast<double>(std::max<Bytes>(bytes[i], 0))});
  }
  return style;
}

Section measured_section(const Schedule& schedule, const Simulation& simulation, const PlanPageOptions& options) {
  if (!options.measured) return {};
  const MeasuredStep& measured = *options.measured;
  Table table;
  table.columns = {"", "predicted", "measured", "difference"};
  if (measured.peak_bytes > 0) {
    table.rows.push_back({"peak", format_bytes(simulation.peak_bytes), format_bytes(measured.peak_bytes),
                          difference(static_cast<double>(simulation.peak_bytes), static_cast<double>(measured.peak_bytes))});
    if (options.budget_bytes > 0) {
      const bool holds = measured.peak_bytes <= options.budget_bytes;
      table.rows.push_back({"within " + budget_label(options.budget_bytes),
                            simulation.peak_bytes <= options.budget_bytes ? "yes" : "no", holds ? "yes" : "no", ""});
    }
  }
  if (measured.time_us > 0) {
    table.rows.push_back({"time of the step", duration(simulation.time_us), duration(measured.time_us),
                          difference(simulation.time_us, measured.time_us)});
  }
  std::string figure;
  if (!measured.trace.empty()) {
    std::vector<Bytes> predicted = {0};
    for (std::size_t at = 0; at < schedule.actions.size(); ++at) {
      if (schedule.actions[at].kind == Action::Kind::kCompute) predicted.push_back(simulation.bytes_inside[at]);
      predicted.push_back(simulation.bytes_after[at]);
    }
    Chart chart;
    chart.x_label = "share of the step's events";
    chart.x_axis = Axis::kShare;
    chart.summary = "Predicted and measured memory over the events of the step";
    chart.series = {over_events(measured.trace, {.label = "measured", .color = 1, .stepped = true, .filled = true}),
                    over_events(predicted, {.label = "predicted", .color = 0, .stepped = true, .dashed = true})};
    if (options.budget_bytes > 0) {
      chart.horizontal.push_back({budget_label(options.budget_bytes), static_cast<double>(options.budget_bytes)});
    }
    figure = chart_figure(chart);
  }
  return {"Predicted against measured", html_table(table) + (measured.note.empty() ? "" : paragraph(measured.note)) + figure};
}

std::vector<Tile> headline(const TrainingGraph& graph, const Schedule& schedule, const Simulation& simulation,
                           Bytes store_all_bytes, const PlanPageOptions& options) {
  const double share = static_cast<double>(simulation.peak_bytes) / static_cast<double>(std::max<Bytes>(1, store_all_bytes));
  std::vector<Tile> tiles = {
      {"Budget", options.budget_bytes > 0 ? format_bytes(options.budget_bytes) : "none", "for activations"},
      {"Predicted peak", format_bytes(simulation.peak_bytes), percent(share) + " of " + format_bytes(store_all_bytes)}};
  if (options.measured && options.measured->peak_bytes > 0) {
    const Bytes measured = options.measured->peak_bytes;
    tiles.push_back(
        {"Measured peak", format_bytes(measured),
         measured == simulation.peak_bytes
             ? "as predicted, to the byte"
             : difference(static_cast<double>(simulation.peak_bytes), static_cast<double>(measured)) + " against predicted"});
  }
  tiles.push_back(
      {"Overhead", percent(simulation.overhead()),
       duration(simulation.recompute_time_us) + " on top of " + duration(simulation.time_us - simulation.recompute_time_us)});
  const OpId repeatable = graph.has_boundary ? num_forward_ops(graph) : graph.num_ops();
  tiles.push_back({"Recomputed", std::to_string(simulation.num_recomputed),
                   (graph.has_boundary ? "forward ops: " : "ops: ") + std::to_string(repeatable)});
  if (graph.has_boundary) {
    Bytes kept = 0;
    for (const BlockSummary& block : summarize_blocks(graph, schedule)) kept += block.kept_bytes;
    tiles.push_back({"Kept", format_bytes(kept), "from forward to backward"});
  }
  return tiles;
}

}  // namespace

std::string plan_page(const TrainingGraph& graph, const Schedule& schedule, const PlanPageOptions& options) {
  const Simulation simulation = simulate(graph, schedule);
  const Bytes store_all = simulate(graph, schedule_from_sequence(graph, store_all_sequence(graph))).peak_bytes;
  const std::string body =
      tiles(headline(graph, schedule, simulation, store_all, options)) +
      linked_sections({{"Memory over the step", chart_figure(memory_chart(graph, schedule, simulation, options))},
                       measured_section(schedule, simulation, options),
                       curve_section(simulation, options),
                       peak_section(graph, schedule, simulation),
                       blocks_section(graph, schedule),
                       timeline_section(graph, schedule)});
  const std::string name = graph.name.empty() ? "Training plan" : "Training plan of " + graph.name;
  const std::string device = graph.device.empty() ? "" : "On " + graph.device;
  return html_page(name, options.note.empty() ? device : options.note, body);
}

}  // namespace rockmate

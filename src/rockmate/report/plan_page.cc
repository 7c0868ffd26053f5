#include "rockmate/report/plan_page.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "rockmate/report/chart.h"
#include "rockmate/report/page.h"
#include "rockmate/report/summary.h"
#include "rockmate/schedule/budget.h"
#include "rockmate/schedule/simulator.h"

namespace rockmate {
namespace {

constexpr std::size_t kHoldersShown = 14;

std::string percent(double share) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f%%", 100 * share);
  return text.data();
}

std::string milliseconds(Micros time_us) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.3g ms", time_us / 1e3);
  return text.data();
}

// Where the actions lie on the time axis, in ms; one apart where no op has a time.
class Clock {
 public:
  Clock(const TrainingGraph& graph, const Schedule& schedule) : graph_(graph), schedule_(schedule) {
    for (const Op& op : graph.ops) timed_ |= op.time_us > 0;
  }

  bool timed() const { return timed_; }
  double step(const Action& action) const {
    if (action.kind == Action::Kind::kFree) return 0;
    return timed_ ? graph_.ops[action.id].time_us / 1e3 : 1;
  }
  double forward_end() const {
    double x = 0;
    for (std::size_t at = 0; at < schedule_.forward_end; ++at) x += step(schedule_.actions[at]);
    return x;
  }

 private:
  const TrainingGraph& graph_;
  const Schedule& schedule_;
  bool timed_ = false;
};

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

Chart memory_chart(const TrainingGraph& graph, const Schedule& schedule, const Simulation& simulation,
                   const PlanPageOptions& options) {
  const Schedule store_all = schedule_from_sequence(graph, store_all_sequence(graph));
  const Clock clock(graph, schedule);
  Chart chart;
  chart.x_label = clock.timed() ? "time (ms)" : "ops run";
  chart.summary = "Memory over time of the plan, next to the step without recomputation";
  if (simulation.num_recomputed > 0) {
    chart.series.push_back(memory_over_time(graph, store_all, simulate(graph, store_all),
                                            {.label = "without recomputation", .color = 7, .dashed = true}));
  }
  chart.series.push_back(memory_over_time(graph, schedule, simulation, {.label = "this plan", .color = 0, .filled = true}));
  if (options.budget_bytes > 0) {
    chart.horizontal.push_back({"budget " + format_bytes(options.budget_bytes), static_cast<double>(options.budget_bytes)});
  }
  if (schedule.forward_end < schedule.actions.size()) chart.vertical.push_back({"backward begins", clock.forward_end()});
  return chart;
}

std::string holders_table(const std::string& heading, const std::vector<Holder>& holders, bool with_block) {
  Table table;
  table.columns = {heading, "bytes"};
  if (with_block) table.columns.push_back("block");
  Bytes rest = 0;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const Holder& holder = holders[i];
    if (i >= kHoldersShown) {
      rest += holder.bytes;
      continue;
    }
    table.rows.push_back({holder.what, format_bytes(holder.bytes)});
    if (with_block) table.rows.back().push_back(holder.block);
    table.bars.push_back(static_cast<double>(holder.bytes) / static_cast<double>(std::max<Bytes>(1, holders[0].bytes)));
  }
  if (rest > 0) {
    table.rows.push_back({std::to_string(holders.size() - kHoldersShown) + " smaller ones", format_bytes(rest)});
    if (with_block) table.rows.back().push_back("");
  }
  return html_table(table);
}

std::string peak_section(const TrainingGraph& graph, const Schedule& schedule, const Simulation& simulation) {
  if (schedule.actions.empty()) return "";
  const PeakSummary summary = summarize_action(graph, schedule, simulation.peak_action);
  const Action& action = schedule.actions[simulation.peak_action];
  const std::string when = action.kind == Action::Kind::kCompute ? "while " + graph.ops[action.id].name + " runs" : "";
  return section("Who holds the memory at the peak",
                 "<p class=\"note\">" + escaped(format_bytes(simulation.peak_bytes) + " " + when) + ", action " +
                     std::to_string(simulation.peak_action) + " of " + std::to_string(schedule.actions.size()) + ".</p>\n" +
                     holders_table("block", summary.blocks, false) + "<details><summary>By value</summary>\n" +
                     holders_table("value", summary.values, true) + "</details>\n");
}

std::string blocks_section(const TrainingGraph& graph, const Schedule& schedule) {
  Table table;
  table.columns = {"block", "kept for the backward pass", "without recomputation", "recomputed ops", "time of it"};
  Bytes highest = 1;
  const std::vector<BlockSummary> blocks = summarize_blocks(graph, schedule);
  for (const BlockSummary& block : blocks) highest = std::max(highest, block.store_all_kept_bytes);
  for (const BlockSummary& block : blocks) {
    const bool any = block.recomputed > 0;
    table.rows.push_back({block.block, format_bytes(block.kept_bytes), format_bytes(block.store_all_kept_bytes),
                          any ? std::to_string(block.recomputed) + " of " + std::to_string(block.forward_ops) : "none",
                          any ? milliseconds(block.recompute_time_us) : ""});
    table.bars.push_back(static_cast<double>(block.kept_bytes) / static_cast<double>(highest));
  }
  return section("What is kept and what is recomputed", html_table(table));
}

std::string curve_section(const Simulation& simulation, const PlanPageOptions& options) {
  if (options.curve.empty()) return "";
  Chart chart;
  chart.x_label = "activation peak";
  chart.y_label = "overhead";
  chart.x_axis = Axis::kBytes;
  chart.y_axis = Axis::kShare;
  chart.summary = "Overhead of every plan over the memory that it needs";
  Series series{.label = "overhead", .color = 2, .stepped = true, .dotted_points = true};
  for (const CurvePoint& point : options.curve) {
    series.points.push_back({static_cast<double>(point.peak_bytes), std::max(0.0, point.overhead)});
  }
  chart.series.push_back(series);
  chart.marker = Point{static_cast<double>(simulation.peak_bytes), simulation.overhead()};
  if (options.budget_bytes > 0) chart.vertical.push_back({"budget", static_cast<double>(options.budget_bytes)});
  return section("What other budgets would cost", chart_figure(chart));
}

}  // namespace

std::string plan_page(const TrainingGraph& graph, const Schedule& schedule, const PlanPageOptions& options) {
  const Simulation simulation = simulate(graph, schedule);
  const Bytes store_all = simulate(graph, schedule_from_sequence(graph, store_all_sequence(graph))).peak_bytes;
  const double share = static_cast<double>(simulation.peak_bytes) / static_cast<double>(std::max<Bytes>(1, store_all));
  Bytes kept = 0;
  for (const BlockSummary& block : summarize_blocks(graph, schedule)) kept += block.kept_bytes;

  const std::string body =
      tiles({{"Budget", options.budget_bytes > 0 ? format_bytes(options.budget_bytes) : "none", "for activations"},
             {"Predicted peak", format_bytes(simulation.peak_bytes), percent(share) + " of " + format_bytes(store_all)},
             {"Overhead", percent(simulation.overhead()),
              milliseconds(simulation.recompute_time_us) + " of " + milliseconds(simulation.time_us)},
             {"Recomputed", std::to_string(simulation.num_recomputed),
              "of " + std::to_string(num_forward_ops(graph)) + " forward ops"},
             {"Kept", format_bytes(kept), "from forward to backward"}}) +
      section("Memory over the step", chart_figure(memory_chart(graph, schedule, simulation, options))) +
      curve_section(simulation, options) + blocks_section(graph, schedule) + peak_section(graph, schedule, simulation);
  const std::string name = graph.name.empty() ? "Training plan" : "Training plan of " + graph.name;
  return html_page(name, options.note.empty() ? "On " + graph.device : options.note, body);
}

}  // namespace rockmate

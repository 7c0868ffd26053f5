#include "rockmate/report/block_sections.h"

#include <algorithm>
#include <map>

#include "rockmate/report/clock.h"
#include "rockmate/report/page.h"
#include "rockmate/report/strips.h"
#include "rockmate/report/summary.h"
#include "rockmate/report/texts.h"
#include "rockmate/schedule/budget.h"

namespace rockmate {
namespace {

constexpr std::size_t kHoldersShown = 12;
constexpr std::size_t kBlocksOpen = 14;  // a table of more blocks is folded
constexpr std::size_t kRowsDrawn = 60;   // more blocks share rows

enum class Detail { kNone, kCount, kBlock };

std::string holders_table(const std::string& heading, const std::vector<Holder>& holders, Bytes peak_bytes, Detail detail) {
  Table table;
  table.columns = {heading, "bytes", "share"};
  if (detail == Detail::kCount) table.columns.push_back("values");
  if (detail == Detail::kBlock) table.columns.push_back("block");
  const auto add = [&](const std::string& what, Bytes bytes, const std::string& last) {
    const double share = static_cast<double>(bytes) / static_cast<double>(std::max<Bytes>(1, peak_bytes));
    table.rows.push_back({what, format_bytes(bytes), percent(share)});
    if (detail != Detail::kNone) table.rows.back().push_back(last);
    table.bars.push_back(share);
  };
  Bytes rest = 0;
  std::int32_t rest_count = 0;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const Holder& holder = holders[i];
    if (i < kHoldersShown || holders.size() == kHoldersShown + 1) {
      add(holder.what, holder.bytes, detail == Detail::kBlock ? holder.block : std::to_string(holder.count));
    } else {
      rest += holder.bytes;
      rest_count += holder.count;
    }
  }
  if (rest_count > 0) {
    add(std::to_string(holders.size() - kHoldersShown) + " smaller ones", rest,
        detail == Detail::kCount ? std::to_string(rest_count) : "");
  }
  return html_table(table);
}

// Blocks share rows where there are too many; a row is named after its first and last block.
std::vector<StripRow> empty_rows(const std::vector<std::string>& blocks) {
  const std::size_t each = (blocks.size() + kRowsDrawn - 1) / std::max<std::size_t>(kRowsDrawn, 1);
  std::vector<StripRow> rows;
  for (std::size_t i = 0; i < blocks.size(); i += each) {
    const std::size_t last = std::min(i + each, blocks.size()) - 1;
    rows.push_back({last > i ? blocks[i] + " to " + blocks[last] : blocks[i], {}});
  }
  return rows;
}

}  // namespace

Section peak_section(const TrainingGraph& graph, const Schedule& schedule, const Simulation& simulation) {
  if (schedule.actions.empty()) return {};
  const PeakSummary summary = summarize_action(graph, schedule, simulation.peak_action);
  const Action& action = schedule.actions[simulation.peak_action];
  std::string when = format_bytes(simulation.peak_bytes);
  if (action.kind == Action::Kind::kCompute) {
    const Op& op = graph.ops[action.id];
    when += " while " + op.name + (op.module.empty() ? "" : " of " + op.module) + " runs";
  }
  when += ", action " + std::to_string(simulation.peak_action + 1) + " of " + std::to_string(schedule.actions.size()) + ".";
  const Bytes peak = simulation.peak_bytes;
  return {"Who holds the memory at the peak",
          paragraph(when) + "<div class=\"pair\">\n<div>" + holders_table("block", summary.blocks, peak, Detail::kCount) +
              "</div>\n<div>" + holders_table("made by", summary.calls, peak, Detail::kCount) + "</div>\n</div>\n" +
              folded("Value by value", holders_table("value", summary.values, peak, Detail::kBlock))};
}

Section blocks_section(const TrainingGraph& graph, const Schedule& schedule) {
  const std::vector<BlockSummary> blocks = summarize_blocks(graph, schedule);
  if (blocks.empty()) return {};
  // In a graph in one pass nothing divides what is kept from what is in use.
  const bool keeps = graph.has_boundary;
  Table table;
  table.columns = {"block"};
  if (keeps) table.columns.insert(table.columns.end(), {"kept for the backward pass", "without recomputation"});
  table.columns.insert(table.columns.end(), {"ops", "recomputations", "most often", "time of them"});
  Bytes highest = 1;
  for (const BlockSummary& block : blocks) highest = std::max(highest, block.store_all_kept_bytes);
  BlockSummary all;
  for (const BlockSummary& block : blocks) {
    const bool any = block.recomputed > 0;
    std::vector<std::string>& row = table.rows.emplace_back(std::vector<std::string>{block.block});
    if (keeps) row.insert(row.end(), {format_bytes(block.kept_bytes), format_bytes(block.store_all_kept_bytes)});
    row.insert(row.end(), {std::to_string(block.forward_ops), any ? std::to_string(block.recomputed) : "none",
                           any ? times(block.most_often) : "", any ? duration(block.recompute_time_us) : ""});
    if (keeps) table.bars.push_back(static_cast<double>(block.kept_bytes) / static_cast<double>(highest));
    all.kept_bytes += block.kept_bytes;
    all.store_all_kept_bytes += block.store_all_kept_bytes;
    all.recomputed += block.recomputed;
    all.most_often = std::max(all.most_often, block.most_often);
    all.recompute_time_us += block.recompute_time_us;
  }
  std::string text;
  if (keeps) {
    text = "Of " + format_bytes(all.store_all_kept_bytes) + " that are kept without recomputation, " +
           format_bytes(all.kept_bytes) + " are kept. ";
  }
  if (all.recomputed == 0) {
    text += "Nothing is recomputed.";
  } else {
    text += std::to_string(all.recomputed) + (all.recomputed == 1 ? " recomputation takes " : " recomputations take ") +
            duration(all.recompute_time_us) +
            (all.most_often > 1 ? "; no op runs again more than " + times(all.most_often) + "." : ".");
  }
  const std::string rows = html_table(table);
  return {"What is kept and what is recomputed",
          paragraph(text) + (blocks.size() <= kBlocksOpen ? rows : folded(std::to_string(blocks.size()) + " blocks", rows))};
}

Section timeline_section(const TrainingGraph& graph, const Schedule& schedule) {
  const std::vector<std::string> block_of_op = blocks_of(graph);
  std::vector<std::string> blocks;
  std::map<std::string, std::size_t> index;
  for (const std::string& block : block_of_op) {
    if (index.try_emplace(block, blocks.size()).second) blocks.push_back(block);
  }
  if (blocks.size() < 2) return {};  // one row says nothing
  const Clock clock(graph, schedule);
  StripChart chart;
  chart.rows = empty_rows(blocks);
  chart.high_x = clock.end();
  chart.x_label = clock.label();
  chart.summary = "When the ops of each block run: forward, again, and backward";
  constexpr int kForward = 0, kAgain = 1, kBackward = 7;
  chart.legend = {{"forward", kForward}, {"recomputed", kAgain}, {"backward", kBackward}};
  const std::size_t each = (blocks.size() + chart.rows.size() - 1) / chart.rows.size();
  std::vector<bool> is_computed(graph.ops.size(), false);
  std::vector<std::vector<Strip>> again(chart.rows.size());
  double now = 0;
  for (const Action& action : schedule.actions) {
    if (action.kind != Action::Kind::kCompute) continue;
    const double end = now + clock.step(action);
    const std::size_t row = index[block_of_op[action.id]] / each;
    if (is_computed[action.id]) {
      again[row].push_back({now, end, kAgain, true});
    } else {
      const bool forward = graph.ops[action.id].pass == Pass::kForward || !graph.has_boundary;
      chart.rows[row].strips.push_back({now, end, forward ? kForward : kBackward});
    }
    is_computed[action.id] = true;
    now = end;
  }
  for (std::size_t row = 0; row < again.size(); ++row) {
    chart.rows[row].strips.insert(chart.rows[row].strips.end(), again[row].begin(), again[row].end());
  }
  return {"When each block runs", strips_figure(chart)};
}

}  // namespace rockmate

#include "rockmate/report/summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "rockmate/schedule/simulator.h"

namespace rockmate {
namespace {

bool is_number(const std::string& part) { return !part.empty() && part.find_first_not_of("0123456789") == std::string::npos; }

const std::string& shown(const std::string& block) {
  static const std::string kOutside = "(no module)";
  return block.empty() ? kOutside : block;
}

// "aten.addmm" for "aten.addmm.default": the usual overload goes without saying.
std::string call_of(const Op& op) {
  constexpr std::string_view kUsual = ".default";
  if (op.target.ends_with(kUsual)) return op.target.substr(0, op.target.size() - kUsual.size());
  return op.target.empty() ? op.name : op.target;
}

// Charged values of forward ops that are alive when the backward pass begins.
std::vector<ValueId> kept_values(const TrainingGraph& graph, const Schedule& schedule) {
  std::vector<bool> alive(graph.values.size(), false);
  for (std::size_t at = 0; at < schedule.forward_end; ++at) {
    const Action& action = schedule.actions[at];
    if (action.kind == Action::Kind::kFree) {
      alive[action.id] = false;
    } else {
      for (ValueId output : graph.ops[action.id].outputs) alive[output] = true;
    }
  }
  std::vector<ValueId> kept;
  for (ValueId id = 0; id < graph.num_values(); ++id) {
    if (alive[id] && charged_bytes(graph.values[id]) > 0) kept.push_back(id);
  }
  return kept;
}

void sort_by_size(std::vector<Holder>& holders) {
  std::stable_sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
}

// The holders summed by one of their texts, largest first.
std::vector<Holder> grouped(const std::vector<Holder>& holders, std::string Holder::*key) {
  std::map<std::string, Holder> groups;
  for (const Holder& holder : holders) {
    Holder& group = groups.try_emplace(holder.*key, Holder{holder.*key, "", "", 0, 0}).first->second;
    group.bytes += holder.bytes;
    group.count += holder.count;
  }
  std::vector<Holder> result;
  for (const auto& [name, group] : groups) result.push_back(group);
  sort_by_size(result);
  return result;
}

}  // namespace

std::string block_of(const std::string& module, int levels) {
  std::size_t block_end = std::string::npos;
  for (std::size_t begin = 0; begin < module.size() && levels > 0;) {
    const std::size_t end = std::min(module.find('.', begin), module.size());
    if (is_number(module.substr(begin, end - begin))) {
      block_end = end;
      --levels;
    }
    begin = end + 1;
  }
  return module.substr(0, block_end);
}

std::vector<std::string> blocks_of(const TrainingGraph& graph, std::size_t most) {
  std::vector<std::string> blocks;
  for (int levels = 3; levels >= 1; --levels) {
    blocks.clear();
    for (const Op& op : graph.ops) blocks.push_back(shown(block_of(op.module, levels)));
    if (std::set<std::string>(blocks.begin(), blocks.end()).size() <= most) break;
  }
  return blocks;
}

std::vector<BlockSummary> summarize_blocks(const TrainingGraph& graph, const Schedule& schedule) {
  const std::vector<std::string> blocks = blocks_of(graph);
  std::vector<BlockSummary> summaries;
  std::map<std::string, std::size_t> index;
  const auto summary_of = [&](OpId op) -> BlockSummary& {
    const auto [place, is_new] = index.try_emplace(blocks[op], summaries.size());
    if (is_new) summaries.push_back({.block = blocks[op]});
    return summaries[place->second];
  };
  const OpId repeatable = graph.has_boundary ? num_forward_ops(graph) : graph.num_ops();
  for (OpId op = 0; op < repeatable; ++op) ++summary_of(op).forward_ops;

  std::vector<std::int32_t> computed(graph.ops.size(), 0);
  for (const Action& action : schedule.actions) {
    if (action.kind != Action::Kind::kCompute || ++computed[action.id] == 1) continue;
    BlockSummary& summary = summary_of(action.id);
    ++summary.recomputed;
    summary.most_often = std::max(summary.most_often, computed[action.id] - 1);
    summary.recompute_time_us += graph.ops[action.id].time_us;
  }
  for (ValueId id : kept_values(graph, schedule)) {
    summary_of(graph.values[id].producer).kept_bytes += graph.values[id].bytes;
  }
  for (ValueId id : kept_values(graph, schedule_from_sequence(graph, store_all_sequence(graph)))) {
    summary_of(graph.values[id].producer).store_all_kept_bytes += graph.values[id].bytes;
  }
  return summaries;
}

PeakSummary summarize_action(const TrainingGraph& graph, const Schedule& schedule, std::size_t at) {
  const std::vector<std::string> blocks = blocks_of(graph);
  PeakSummary summary;
  for (ValueId id : alive_at(graph, schedule, at)) {
    const Value& value = graph.values[id];
    const std::string outside = "(gradient of an output)";
    const std::string block = value.producer == kNone ? outside : blocks[value.producer];
    const std::string call = value.producer == kNone ? outside : call_of(graph.ops[value.producer]);
    summary.values.push_back({value.name, block, call, value.bytes});
  }
  const Action& action = schedule.actions[at];
  if (action.kind == Action::Kind::kCompute && graph.ops[action.id].workspace_bytes > 0) {
    const Op& op = graph.ops[action.id];
    summary.values.push_back({"workspace of " + op.name, blocks[action.id], "workspace of " + call_of(op), op.workspace_bytes});
  }
  sort_by_size(summary.values);
  summary.blocks = grouped(summary.values, &Holder::block);
  summary.calls = grouped(summary.values, &Holder::call);
  return summary;
}

}  // namespace rockmate

#include "rockmate/planner/chain_plans.h"

#include <algorithm>
#include <limits>

#include "rockmate/planner/background.h"
#include "rockmate/schedule/schedule.h"
#include "rockmate/solvers/block_cache.h"
#include "rockmate/solvers/keep.h"
#include "rockmate/solvers/sequence_memory.h"

namespace rockmate {
namespace {

constexpr int kFinePoints = 100;  // of a table at the least memory, or at the focus

// What a forward pass that saves only the output runs.
BlockOption forward_only(const BlockProblem& problem) {
  BlockProblem forward = problem;
  const OpId num_forward = num_forward_ops(problem.graph);
  forward.graph.ops.resize(num_forward);
  forward.graph.values.resize(problem.graph.values.size());
  for (Value& value : forward.graph.values) {
    if (value.producer >= num_forward || value.kind == ValueKind::kTangent) value = {.name = "", .kind = ValueKind::kInput};
  }
  return price_option(forward, store_all_sequence(forward.graph));
}

// Steps of memory at which the time falls, thinned to about `count`, the lowest included.
std::vector<int> useful_steps(const RotorTable& table, int count) {
  std::vector<int> falls;
  for (int m = 0; m <= table.steps(); ++m) {
    if (table.time_us(m) < (m == 0 ? std::numeric_limits<Micros>::infinity() : table.time_us(m - 1))) falls.push_back(m);
  }
  std::vector<int> chosen;
  int next = 0;
  for (int m : falls) {
    if (m < next) continue;
    chosen.push_back(m);
    next = m + std::max(table.steps() / count, 1);
  }
  return chosen;
}

}  // namespace

std::vector<RotorBlock> rotor_blocks(const TrainingGraph& graph, const Chain& chain, const BlockClasses& classes,
                                     const std::vector<BlockOptions>& block_plans) {
  std::vector<BlockOption> forwards;
  for (const BlockProblem& problem : classes.problems) forwards.push_back(forward_only(problem));
  std::vector<RotorBlock> blocks;
  for (std::size_t k = 0; k < chain.blocks.size(); ++k) {
    const BlockOption& forward = forwards[classes.class_of[k]];
    RotorBlock block;
    block.options = &block_plans[classes.class_of[k]].options;
    block.output_bytes = chain.blocks[k].output == kNone ? 0 : charged_bytes(graph.values[chain.blocks[k].output]);
    block.gradient_bytes = chain.gradient_bytes[k + 1];
    block.passing_bytes = classes.passing_bytes[k];
    block.released_bytes = chain.pinned_bytes - chain.pinned_bytes_at[k];
    block.none_ops = forward.forward_ops;
    block.none_us = forward.forward_us;
    block.none_peak_bytes = forward.forward_peak_bytes;
    blocks.push_back(std::move(block));
  }
  return blocks;
}

std::vector<OpId> whole_sequence(const TrainingGraph& graph, const BlockClasses& classes,
                                 const std::vector<std::pair<int, OpId>>& backward) {
  std::vector<OpId> sequence(num_forward_ops(graph));
  for (std::size_t i = 0; i < sequence.size(); ++i) sequence[i] = static_cast<OpId>(i);
  for (const auto& [block, op] : backward) sequence.push_back(classes.op_of[block][op]);
  return without_dead_recomputations(graph, sequence);
}

std::vector<BlockOptions> solve_blocks(const BlockClasses& classes, const PlannerOptions& options, const StageRunner& runner,
                                       StageState& state) {
  const int count = static_cast<int>(classes.problems.size());
  const bool is_whole = classes.class_of.size() == 1;
  std::vector<BlockOptions> result(count);
  BlockSettings settings;
  settings.save_levels = is_whole ? 1 : options.save_levels;  // nothing is saved for anybody when there is one block
  settings.peak_levels = options.peak_levels;
  settings.mip_gap = options.mip_gap;
  const bool is_short = fit_to_time(options.time_limit_s * num_threads(options.threads), count, settings);
  settings.stop = &state.stop;
  settings.pairs_done = &state.done;
  state.total = count * settings.save_levels * settings.peak_levels;

  std::vector<int> largest_first(count);
  for (int i = 0; i < count; ++i) largest_first[i] = i;
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [&](int a, int b) { return classes.problems[a].graph.num_ops() > classes.problems[b].graph.num_ops(); });
  const BlockCache cache(options.cache_dir, settings);
  runner.parallel(count, [&](int at) {
    const int i = largest_first[at];
    if (auto known = cache.find(classes.problems[i], classes.forms[i])) {
      result[i] = std::move(*known);
      state.done += settings.save_levels * settings.peak_levels;
      return;
    }
    result[i] = block_options(classes.problems[i], settings);
    if (result[i].complete && !is_short) cache.store(classes.forms[i], result[i]);
  });
  return result;
}

void add_chain_plans(const TrainingGraph& graph, const Chain& chain, const BlockClasses& classes,
                     const std::vector<BlockOptions>& block_plans, const PlannerOptions& options, const StageRunner& runner,
                     StageState& state, Frontier& frontier) {
  const std::vector<RotorBlock> blocks = rotor_blocks(graph, chain, classes, block_plans);
  const Bytes most = std::max<Bytes>(frontier.all().rbegin()->first - chain.pinned_bytes, 1);
  const int per_table = static_cast<int>(blocks.size() + 1);
  const int points = points_for(graph, options);
  PlannerOptions fine = options;
  fine.curve_points = std::max(options.curve_points, kFinePoints);
  const int fine_points = points_for(graph, fine);
  // The plans at these steps of a table, on so many threads. They are added in order of memory, so that the frontier is the
  // same on any number of threads.
  using Sequences = std::vector<std::vector<OpId>>;
  const auto plans_at = [&](const RotorTable& table, const std::vector<int>& steps, int threads) {
    Sequences sequences(2 * steps.size());
    run_parallel(static_cast<int>(steps.size()), threads, [&](int i) {
      if (state.stop) return;
      std::vector<OpId> sequence = whole_sequence(graph, classes, table.backward(steps[i]));
      if (options.across_blocks) {
        sequences[2 * i] = keep_within(graph, sequence, chain.pinned_bytes + table.bytes_of(steps[i]), &state.stop);
      }
      sequences[2 * i + 1] = std::move(sequence);
    });
    ++state.done;
    return sequences;
  };
  const auto add = [&](Sequences sequences) {
    for (std::vector<OpId>& sequence : sequences) {
      if (!sequence.empty()) frontier.add(std::move(sequence), "rockmate");
    }
  };

  state.total = 2 * per_table;
  const RotorTable whole(blocks, most, options.memory_steps, &state.stop, &state.done);
  if (state.stop) return;
  const std::vector<int> steps = useful_steps(whole, points);
  add(plans_at(whole, steps, options.threads));
  const Bytes least = steps.empty() ? most : whole.bytes_of(steps.front());
  std::vector<std::pair<Bytes, Bytes>> ranges;
  for (Bytes top = most / 2; top > 2 * least; top /= 2) ranges.emplace_back(top / 2, top);
  ranges.emplace_back(0, std::min(most, 2 * least));
  const int first_fine = static_cast<int>(ranges.size());
  ranges.emplace_back(0, std::min(most, least / 16 * 17 + 1));
  // Around the least memory nothing may depend on the focus: a budget that is refused names a least one, and a call with that
  // one has to find the same plans.
  const Bytes focus = std::min(options.focus_bytes - chain.pinned_bytes, most);
  if (focus > least) ranges.emplace_back(focus / 8 * 7, focus / 16 * 17 + 1);
  state.total = static_cast<int>(ranges.size() + 1) * per_table;
  std::vector<Sequences> found(ranges.size());
  runner.parallel(static_cast<int>(ranges.size()), [&](int i) {
    const auto [bottom, top] = ranges[i];
    if (state.stop) return;
    const RotorTable table(blocks, top, options.memory_steps, &state.stop, &state.done);
    if (state.stop) return;
    std::vector<int> above = useful_steps(table, i >= first_fine ? fine_points : points);
    std::erase_if(above, [&](int m) { return table.bytes_of(m) < bottom; });
    found[i] = plans_at(table, above, 1);
  });
  for (Sequences& sequences : found) add(std::move(sequences));
}

}  // namespace rockmate

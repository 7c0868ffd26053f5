#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "rockmate/partition/block_problem.h"
#include "rockmate/planner/chain_plans.h"
#include "rockmate/planner/frontier.h"
#include "rockmate/planner/judge.h"
#include "rockmate/planner/planner.h"
#include "rockmate/planner/stage_runner.h"
#include "rockmate/planner/whole_graph_plans.h"

namespace rockmate {
namespace {

void check_options(const PlannerOptions& options) {
  const auto fail = [](const std::string& what) { throw std::invalid_argument("[plan] " + what); };
  const auto check_levels = [&](int levels, const char* name) {
    if (levels < 2 || levels > 30) fail(std::string(name) + " is " + std::to_string(levels) + ", choose 2 to 30");
  };
  check_levels(options.save_levels, "save_levels");
  check_levels(options.peak_levels, "peak_levels");
  if (options.memory_steps < 500 || options.memory_steps > 20'000) {
    fail("memory_steps is " + std::to_string(options.memory_steps) + ", choose 500 to 20000");
  }
  if (options.curve_points < 1) fail("curve_points is " + std::to_string(options.curve_points) + ", choose 1 or more");
  if (options.threads < 0) fail("threads is " + std::to_string(options.threads) + ", choose 0 for all cores, or more");
  if (!(options.mip_gap >= 0 && options.mip_gap < 1)) fail("mip_gap is outside [0, 1), choose e.g. 0.001");
  if (!(options.time_limit_s > 0)) fail("time_limit_s is not positive, choose some seconds");
}

// Ascending peak, strictly descending time.
std::vector<Plan> drop_beaten(std::vector<Plan> plans) {
  std::stable_sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) {
    return a.peak_bytes != b.peak_bytes ? a.peak_bytes < b.peak_bytes : a.time_us < b.time_us;
  });
  std::vector<Plan> kept;
  for (Plan& plan : plans) {
    if (kept.empty() || plan.time_us < kept.back().time_us) kept.push_back(std::move(plan));
  }
  return kept;
}

std::string describe(const Chain& chain, const BlockClasses& classes, bool timed_out) {
  std::string note;
  if (chain.blocks.size() > 1) {
    note = "planned as a chain of " + std::to_string(chain.blocks.size()) + " blocks (" +
           std::to_string(classes.problems.size()) + " different ones)";
  } else {
    note = "the graph has no chain of blocks: planned as a whole";
  }
  return note + (timed_out ? "; the search was cut short." : ".");
}

}  // namespace

const Plan* PlanCurve::at(Bytes budget) const {
  const auto next =
      std::upper_bound(plans.begin(), plans.end(), budget, [](Bytes b, const Plan& plan) { return b < plan.peak_bytes; });
  return next == plans.begin() ? nullptr : &*std::prev(next);
}

PlanCurve plan_curve(const TrainingGraph& graph, const PlannerOptions& options) {
  check_graph(graph);
  check_options(options);
  StageRunner runner(options);
  PlanCurve curve;
  Chain chain;
  BlockClasses classes;
  std::vector<BlockOptions> block_plans;
  Frontier frontier(graph);
  const std::optional<TrainingGraph> divided = with_boundary(graph);  // the chain's view of a graph in one pass
  const TrainingGraph& step = divided ? *divided : graph;

  runner.run("partition", [&](StageState&) {
    frontier.add(store_all_sequence(graph), "store-all");
    if (!step.has_boundary) return;
    chain = partition_chain(step);
    classes = classify_blocks(step, chain);
  });
  const bool has_backward = num_forward_ops(graph) < graph.num_ops();
  if (has_backward && !chain.blocks.empty()) {
    runner.run("blocks", [&](StageState& state) { block_plans = solve_blocks(classes, options, runner, state); });
    runner.run("chain", [&](StageState& state) {
      add_chain_plans(step, chain, classes, block_plans, options, runner, state, frontier);
    });
  }
  if (has_backward && options.across_blocks) {
    runner.run("whole graph", [&](StageState& state) { add_whole_graph_plans(graph, options, state, frontier); });
  }
  std::vector<Plan> plans;
  runner.run("simulate", [&](StageState& state) {
    state.total = static_cast<int>(frontier.all().size()) + 1;
    const std::optional<Plan> plain = judged_plan(graph, store_all_sequence(graph), "store-all");
    if (!plain) throw std::logic_error("[plan] the graph's own order is refused by the verifier");
    curve.store_all_peak_bytes = plain->peak_bytes;
    curve.store_all_time_us = plain->time_us;
    plans.push_back(*plain);
    std::vector<const Candidate*> candidates;
    for (const auto& [peak_bytes, candidate] : frontier.all()) candidates.push_back(&candidate);
    std::vector<std::optional<Plan>> judged(candidates.size());
    runner.parallel(static_cast<int>(candidates.size()), [&](int i) {
      judged[i] = judged_plan(graph, candidates[i]->sequence, candidates[i]->planner);
      ++state.done;
    });
    for (std::optional<Plan>& plan : judged) {
      if (plan) plans.push_back(std::move(*plan));
    }
  });

  curve.plans = drop_beaten(std::move(plans));
  curve.num_blocks = std::max(static_cast<int>(chain.blocks.size()), 1);
  curve.num_block_classes = static_cast<int>(classes.problems.size());
  curve.has_chain = curve.num_blocks > 1;
  curve.status = runner.timed_out() ? PlanStatus::kTimeLimit : PlanStatus::kFeasible;
  curve.note = describe(chain, classes, runner.timed_out());
  curve.stages = runner.times();
  return curve;
}

}  // namespace rockmate

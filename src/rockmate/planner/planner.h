// The pipeline: a training graph in, all its plans out.
//
// A budget is answered from a curve that does not depend on the budget: one solve gives plans for every budget, the simulator
// prices them, and those that are beaten in peak and time both are dropped. Answering from one curve is what makes a lower
// budget never lead to a higher peak, and what lets a user see the bend.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rockmate/schedule/schedule.h"
#include "rockmate/schedule/simulator.h"

namespace rockmate {

struct Progress {
  std::string stage;  // "partition", "blocks", "chain", "whole graph", "simulate"
  double done = 0;    // share of the stage, 0 to 1
};

struct PlannerOptions {
  int save_levels = 10;       // block options: levels of bytes kept between a block's forward and backward (2 to 30)
  int peak_levels = 10;       // block options: levels of peak inside a block's backward (2 to 30)
  int memory_steps = 500;     // resolution of the chain's memory axis (500 or more)
  int curve_points = 100;     // budgets between the minimum and store-all at which a plan is made
  Bytes focus_bytes = 0;      // a budget near which plans are sought more finely; 0 for none
  bool across_blocks = true;  // after the chain, changes of the whole sequence; false: what the chain gives, as it is
  int threads = 0;            // solver threads, 0 for all cores
  double mip_gap = 1e-3;      // relative gap at which a block's ILP is called solved
  double time_limit_s = 300;  // for all solvers together; the best plans found until then are returned
  double polish_s = -1;       // planners/auto.h: seconds of polishing; negative for what usually suffices
  std::string cache_dir;      // where solved blocks are kept between runs; empty for none
  // Once true, plan_curve returns the plans found until then, as after the time limit. nullptr: never.
  const std::atomic<bool>* stop = nullptr;
  // Called often, from the calling thread; false asks to stop: plan_curve then throws Interrupted.
  std::function<bool(const Progress&)> on_progress;
};

struct Interrupted {};

enum class PlanStatus : std::uint8_t { kOptimal, kFeasible, kTimeLimit };

struct Plan {
  std::vector<OpId> sequence;
  Schedule schedule;     // verified
  Bytes peak_bytes = 0;  // simulated
  Micros time_us = 0;
  double overhead = 0;  // time over the time with no recomputation, minus one
  std::int32_t num_recomputed = 0;
  std::string planner;  // "store-all", "rockmate", "evict", ...
};

struct StageTime {
  std::string stage;
  double seconds;
};

struct PlanCurve {
  std::vector<Plan> plans;         // ascending peak, strictly descending time; never empty; the last one is store-all
                                   // unless something with a lower peak is as fast
  Bytes store_all_peak_bytes = 0;  // "100 %"
  Micros store_all_time_us = 0;
  PlanStatus status = PlanStatus::kFeasible;
  int num_blocks = 0;         // blocks of the chain; 1 when the graph has no chain
  int num_block_classes = 0;  // distinct ones, solved once each
  bool has_chain = false;
  std::string note;  // one sentence for the user: how the graph was planned, e.g. that it has no chain
  std::vector<StageTime> stages;

  // The least budget that can be met: the peak of the first plan.
  Bytes min_budget_bytes() const { return plans.front().peak_bytes; }
  // The fastest plan whose peak is within the budget; nullptr when even the first one is not.
  const Plan* at(Bytes budget) const;
};

// Throws std::invalid_argument for a bad graph or bad options, Interrupted when on_progress asked to stop.
PlanCurve plan_curve(const TrainingGraph& graph, const PlannerOptions& options = {});

}  // namespace rockmate

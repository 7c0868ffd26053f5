// What one block offers to the chain: ways to run its forward and backward, each with its exact price.
//
// An option is a sequence over the block's own graph (local ids): the forward pass, then the backward pass with
// recomputations. What it saves follows: inner values that the backward part reads before it computes them again. The grid asks
// rk-Checkmate for the fastest backward at `save_levels` x `peak_levels` budgets; most pairs need no solve, because
//   * an optimum for (s, p) that uses (s', p') answers every pair between, and bounds every smaller pair from below;
//   * what is infeasible stays so at smaller budgets;
//   * eviction has filled the pool before, and its options start the program or meet the bound already.
// Blocks too large for the program get eviction's options alone.
#pragma once

#include <atomic>
#include <span>

#include "rockmate/partition/block_problem.h"

namespace rockmate {

struct BlockOption {
  std::vector<OpId> sequence;     // local ids
  int num_forward = 0;            // length of its forward part
  Bytes saved_bytes = 0;          // inner values kept between forward and backward, the output x not counted
  Bytes forward_peak_bytes = 0;   // without the input x, with the output
  Bytes backward_peak_bytes = 0;  // without the input x, with gradients
  Micros recompute_us = 0;        // in the backward part
  std::vector<OpId> forward_ops;  // what a forward that is run again must compute: for the saved values and x ...
  Micros forward_us = 0;
  std::vector<OpId> lone_ops;  // ... and for the saved values alone, when the backward follows at once
  Micros lone_us = 0;

  std::span<const OpId> backward() const { return std::span(sequence).subspan(num_forward); }
  bool operator==(const BlockOption&) const = default;
};

struct BlockSettings {
  int save_levels = 10;
  int peak_levels = 10;
  double mip_gap = 1e-3;
  int max_program_ops = 60;  // larger blocks get no integer program
  double time_limit_s = 20;  // per program
  const std::atomic<bool>* stop = nullptr;
  std::atomic<int>* pairs_done = nullptr;  // counts up to save_levels * peak_levels
};

struct BlockOptions {
  std::vector<BlockOption> options;  // none is worse than another in everything; the first saves all: recompute_us is 0
  bool complete = true;              // false when a time limit or `stop` cut the search short
  int num_programs = 0;              // integer programs solved
};

BlockOptions block_options(const BlockProblem& problem, const BlockSettings& settings);

// The exact price of a sequence of the block.
BlockOption price_option(const BlockProblem& problem, std::vector<OpId> sequence);

}  // namespace rockmate

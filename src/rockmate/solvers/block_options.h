// What one block offers to the chain: ways to run its forward and backward, each with its exact price.
//
// An option is a sequence over the block's own graph (local ids): the forward pass, then the backward pass with
// recomputations. What it saves follows: inner values that the backward part reads before it computes them again. The grid asks
// for the fastest backward at `save_levels` x `peak_levels` budgets, and then for the least peak of all:
//   * eviction fills the pool;
//   * stage_search answers all save levels of one peak at once, in milliseconds, and proves it, where few states survive;
//   * where too many do, rk_checkmate solves some of the pairs that are left. An optimum bounds every smaller pair from below,
//   and an option
//     of the pool that meets the bound answers the pair without a program.
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
  int max_program_binaries = 150;   // larger blocks get no integer program: it would take minutes
  int max_programs = 4;             // of one block: the beam of a search that gave up is a good answer already
  double time_limit_s = 0.5;        // per program
  std::size_t max_states = 50'000;  // of stage_search
  const std::atomic<bool>* stop = nullptr;
  std::atomic<int>* pairs_done = nullptr;  // counts up to save_levels * peak_levels
};

struct BlockOptions {
  std::vector<BlockOption> options;  // none is worse than another in everything; one recomputes nothing
  bool complete = true;              // false when a time limit or `stop` cut the search short
  int num_programs = 0;              // integer programs solved
};

BlockOptions block_options(const BlockProblem& problem, const BlockSettings& settings);

// Less of programs and searches where `num_blocks` blocks must do with `seconds` of one thread; true when that is less than the
// settings had.
bool fit_to_time(double seconds, int num_blocks, BlockSettings& settings);

// The exact price of a sequence of the block.
BlockOption price_option(const BlockProblem& problem, std::vector<OpId> sequence);

}  // namespace rockmate

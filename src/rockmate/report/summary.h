// What a plan does, module by module: the figures behind the report and the command line.
#pragma once

#include <string>
#include <vector>

#include "rockmate/schedule/schedule.h"

namespace rockmate {

// The block of a module path: all up to its last number, of which it has `levels` at most; the whole path when it has none.
//   block_of("encoder.stages.0.layers.2.conv", 1) is "encoder.stages.0"
//   block_of("encoder.stages.0.layers.2.conv", 2) is "encoder.stages.0.layers.2"
//   block_of("transformer.h.3.mlp.c_fc", 2)       is "transformer.h.3"
std::string block_of(const std::string& module, int levels);

// For each op its block, at the finest level that gives at most `most` blocks (or the coarsest, where none does).
std::vector<std::string> blocks_of(const TrainingGraph& graph, std::size_t most = 40);

struct BlockSummary {
  std::string block;
  std::int32_t forward_ops = 0;  // all its ops in a graph without boundary
  std::int32_t recomputed = 0;   // computes of its forward ops beyond each one's first
  std::int32_t most_often = 0;   // of the op among them that is computed most often
  Micros recompute_time_us = 0;
  Bytes kept_bytes = 0;            // of its forward values, those alive when the backward pass begins
  Bytes store_all_kept_bytes = 0;  // the same without recomputation
};

// One entry per block that has forward ops (any ops, in a graph without boundary), in graph order.
std::vector<BlockSummary> summarize_blocks(const TrainingGraph& graph, const Schedule& schedule);

struct Holder {
  std::string what;   // an op's output, a block, or what ops call
  std::string block;  // of an op's output
  std::string call;   // of an op's output, e.g. "aten.addmm"
  Bytes bytes = 0;
  std::int32_t count = 1;  // of values
};

struct PeakSummary {
  std::vector<Holder> values;  // largest first; the running op's workspace is one of them
  std::vector<Holder> blocks;  // the same summed by block
  std::vector<Holder> calls;   // the same summed by what was called to make them
};

// Who holds the memory while action `at` runs.
PeakSummary summarize_action(const TrainingGraph& graph, const Schedule& schedule, std::size_t at);

}  // namespace rockmate

// One block as a training graph of its own, so that every solver, and the count of memory, works on blocks as on whole steps.
//
// Ids are local and in order of first appearance, so that blocks equal up to renaming give the same graph. What the block
// gets from outside becomes
//   * its input x and pinned values: resident (somebody else pays for them);
//   * gradients from later blocks: tangents, kept to the end when an earlier block reads them too;
// and what it hands on:
//   * its output x: kept until the forward pass ends (the next block reads it), then free to go;
//   * gradients for earlier blocks: kept to the end.
// Gradients that pass the block without being read are not part of it: BlockClasses::passing_bytes.
#pragma once

#include "rockmate/partition/chain.h"

namespace rockmate {

struct BlockProblem {
  TrainingGraph graph;
  ValueId output = kNone;   // the output x, in local ids
  std::vector<OpId> op_of;  // local op -> op of the whole graph
};

BlockProblem block_problem(const TrainingGraph& graph, const Chain& chain, int block);

// The whole problem of a block as numbers, names left out: equal exactly when two blocks are equal up to renaming.
std::vector<std::int64_t> canonical_form(const BlockProblem& problem);

// Blocks grouped into classes: problems of the first block of each, and the class of every block with its ids.
struct BlockClasses {
  std::vector<BlockProblem> problems;
  std::vector<std::vector<std::int64_t>> forms;
  // By block index:
  std::vector<int> class_of;
  std::vector<std::vector<OpId>> op_of;  // local op -> op of the whole graph
  std::vector<Bytes> passing_bytes;      // gradients held during the block's backward that it does not read
};

BlockClasses classify_blocks(const TrainingGraph& graph, const Chain& chain);

}  // namespace rockmate

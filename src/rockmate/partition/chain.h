// A training step as a chain of blocks: forward 1 .. L, backward L .. 1.
//
//   forward    [ block 1 ] --x1--> [ block 2 ] --x2--> ... [ block L ]
//   backward   [ block 1 ] <--d1-- [ block 2 ] <--d2-- ... [ block L ] <-- tangents
//
// One value x crosses each boundary of the forward pass; every other value that lives across a boundary is *pinned*: computed
// once, in the forward pass, and held until its last reader. Pinned are masks, rotary tables and encoder outputs (they live
// over more than a share of the forward pass), what leaves the step, what an op with side effects wrote, and what a
// backward op of a far block reads. Which share to pin at is chosen by what a plan that checkpoints every block would hold.
//
// A backward op belongs to the block whose inner forward values it reads; without any, it runs as soon as its inputs allow.
// Any number of gradients may cross a boundary of the backward pass (tied weights, gradients of pinned values):
// `gradient_bytes` counts them all.
#pragma once

#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

struct Block {
  OpId begin = 0, end = 0;     // forward ops [begin, end)
  std::vector<OpId> backward;  // ascending
  ValueId input = kNone;       // x of the boundary before; kNone for the first block and where all that crosses is pinned
  ValueId output = kNone;      // x of the boundary after
};

struct Chain {
  std::vector<Block> blocks;  // at least one; blocks[k - 1] is block k of the text
  std::vector<bool> pinned;   // by value
  Bytes pinned_bytes = 0;     // all pinned values together
  std::vector<int> block_of;  // by op: index into blocks
  // By boundary k = 0 .. L: bytes of gradients and tangents alive between the backward of block k + 1 and that of block k.
  std::vector<Bytes> gradient_bytes;
  // By block index: pinned bytes that are still needed once every later block is done with its backward.
  std::vector<Bytes> pinned_bytes_at;
};

// In time near linear in the size of the graph. A graph without a chain gives one block. Segments are put together
// until there are at most `max_blocks`.
Chain partition_chain(const TrainingGraph& graph, int max_blocks = 300);

}  // namespace rockmate

// rk-Rotor: the fastest step of a chain of blocks for every memory at once, by dynamic programming.
//
// After Rotor (Beaumont et al., arXiv 1911.13214) with the block options of "Rockmate" (arXiv 2307.01236). Symbols:
//
//   Opt(s, t, m)   least recomputation time to run blocks s .. t forward and backward within m bytes, given x_{s-1}, which
//                  the caller holds and pays for, and the gradients at boundary t, which are alive from the start
//   option o of s  run s keeping what o saves:            F_s^o, Opt(s + 1, t, m - saved - |x_s|), B_s^o
//   checkpoint s'  run s .. s'-1 keeping only x_{s'-1}:   F, Opt(s', t, m - |x_{s'-1}|), then Opt(s, s'-1, m) from x_{s-1}
//   again
//
// Departures. The forward of an interval that ends at the last block is the step's own forward pass and costs nothing; every
// other forward is a recomputation and runs only the ops that its results need (without the block's output when the backward
// follows at once). All gradients that cross a boundary count, also those that only pass. Pinned bytes come off the
// top, and come back where they are no longer needed. Sizes are rounded up to steps of memory, so a plan never needs more.
#pragma once

#include <atomic>
#include <span>

#include "rockmate/solvers/block_options.h"

namespace rockmate {

// One block's place in the chain.
struct RotorBlock {
  const std::vector<BlockOption>* options = nullptr;
  Bytes output_bytes = 0;      // x after the block
  Bytes gradient_bytes = 0;    // gradients and tangents at the boundary after the block
  Bytes passing_bytes = 0;     // the part of them that the block does not read
  Bytes released_bytes = 0;    // pinned bytes no longer needed once later blocks are done
  std::vector<OpId> none_ops;  // local ids: what the output alone needs
  Micros none_us = 0;
  Bytes none_peak_bytes = 0;  // of a forward that saves nothing but the output
};

class RotorTable {
 public:
  // Memory 0 .. most_bytes in `steps` steps. When `stop` becomes true the table is left unfinished; `done` counts up to
  // blocks.size().
  RotorTable(std::vector<RotorBlock> blocks, Bytes most_bytes, int steps, const std::atomic<bool>* stop = nullptr,
             std::atomic<int>* done = nullptr);

  int steps() const { return steps_; }
  Bytes bytes_of(int step) const { return unit_ * step; }
  // Recomputation time of the whole chain within that many steps of memory; infinite where there is no way.
  Micros time_us(int step) const;

  // What the backward pass of the whole step runs: block index and local op, in order.
  std::vector<std::pair<int, OpId>> backward(int step) const;

 private:
  struct Choice {
    enum class Kind : std::uint8_t { kOption, kCheckpoint } kind = Kind::kOption;
    int index = 0;  // of the option; or the first block after the checkpoint
    float time_us = 0;
  };

  std::size_t row(int s, int t) const;
  void fill(int s, int t);
  Choice choose(int s, int t, int m) const;
  template <typename Consider>
  void for_each_choice(int s, int t, Consider consider) const;
  void walk(int s, int t, int m, std::vector<std::pair<int, OpId>>& sequence) const;
  int steps_for(Bytes bytes) const;
  bool is_first_pass(int t) const { return t + 1 == num_blocks(); }
  int num_blocks() const { return static_cast<int>(blocks_.size()); }

  std::vector<RotorBlock> blocks_;
  int steps_;
  Bytes unit_;
  std::vector<float> opt_;  // rows (s, t), each steps + 1 long
};

}  // namespace rockmate

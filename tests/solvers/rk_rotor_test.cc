#include "rockmate/solvers/rk_rotor.h"

#include <doctest/doctest.h>

#include <limits>
#include <map>

#include "tests/planner/step_builder.h"

using namespace rockmate;

namespace {

// A block that can keep `saved` bytes or recompute its forward in the backward.
std::vector<BlockOption> two_options(Bytes saved, Micros forward_us, Bytes forward_peak, Bytes backward_peak) {
  BlockOption keep;
  keep.sequence = {0, 1};
  keep.num_forward = 1;
  keep.saved_bytes = saved;
  keep.forward_peak_bytes = forward_peak;
  keep.backward_peak_bytes = backward_peak;
  keep.forward_ops = keep.lone_ops = {0};
  keep.forward_us = keep.lone_us = forward_us;
  BlockOption again = keep;
  again.sequence = {0, 0, 1};
  again.saved_bytes = 0;
  again.recompute_us = forward_us;
  again.lone_ops.clear();
  again.lone_us = 0;
  return {keep, again};
}

struct TinyChain {
  std::vector<std::vector<BlockOption>> options;
  std::vector<RotorBlock> blocks;

  explicit TinyChain(int count) {
    options.reserve(count);
    for (int k = 0; k < count; ++k) {
      options.push_back(two_options(5 + k % 3, 10 + 3 * (k % 2), 7 + k % 3, 12 + k % 2));
      RotorBlock block;
      block.options = &options.back();
      block.output_bytes = 2 + k % 2;
      block.gradient_bytes = k + 1 < count ? 2 + k % 2 : 1;
      block.none_ops = {0};
      block.none_us = 10 + 3 * (k % 2);
      block.none_peak_bytes = 5 + k % 2;
      blocks.push_back(block);
    }
  }
};

// The recurrence of rk_rotor.h, straight from its text, without steps of memory.
struct BruteForce {
  const std::vector<RotorBlock>& blocks;
  std::map<std::tuple<int, int, Bytes>, Micros> known{};

  Micros best(int s, int t, Bytes m) {
    const auto [found, is_new] = known.try_emplace({s, t, m}, 0);
    if (!is_new) return found->second;
    constexpr Micros never = std::numeric_limits<Micros>::infinity();
    Micros least = never;
    const bool again = t + 1 < static_cast<int>(blocks.size());
    const Bytes gradients = again ? blocks[t].gradient_bytes : 0;
    for (const BlockOption& option : *blocks[s].options) {
      if (option.backward_peak_bytes > m) continue;
      const bool runs_forward = s < t || !again || !option.lone_ops.empty();
      if (runs_forward && option.forward_peak_bytes + gradients > m) continue;
      Micros time = option.recompute_us;
      if (s < t) {
        const Bytes left = m - option.saved_bytes - blocks[s].output_bytes;
        if (left < 0) continue;
        time += (again ? option.forward_us : 0) + best(s + 1, t, left);
      } else {
        time += again ? option.lone_us : 0;
      }
      least = std::min(least, time);
    }
    Micros forward = 0;
    Bytes peak = 0, before = 0;
    for (int next = s + 1; next <= t; ++next) {
      forward += again ? blocks[next - 1].none_us : 0;
      peak = std::max(peak, before + blocks[next - 1].none_peak_bytes + gradients);
      before = blocks[next - 1].output_bytes;
      if (peak > m || before > m) continue;
      least = std::min(least, forward + best(next, t, m - before) + best(s, next - 1, m));
    }
    return known[{s, t, m}] = least;
  }
};

}  // namespace

TEST_CASE("the table equals the recurrence at every memory") {
  for (int count : {1, 2, 3, 5, 7}) {
    const TinyChain chain(count);
    const RotorTable table(chain.blocks, 500, 500);  // steps of one byte
    BruteForce brute{chain.blocks};
    for (Bytes m = 0; m <= 80; ++m) {
      CAPTURE(count);
      CAPTURE(m);
      CHECK(table.time_us(static_cast<int>(m)) == brute.best(0, count - 1, m));
    }
  }
}

TEST_CASE("coarse memory is never optimistic") {
  const TinyChain chain(6);
  BruteForce brute{chain.blocks};
  const RotorTable table(chain.blocks, 3 * 40, 40);
  for (int m = 0; m <= 40; ++m) CHECK(table.time_us(m) >= brute.best(0, 5, table.bytes_of(m)));
}

TEST_CASE("the backward of a plan runs each block's backward once, from last to first") {
  const TinyChain chain(6);
  const RotorTable table(chain.blocks, 500, 500);
  int least = 0;
  while (least < 500 && table.time_us(least) == std::numeric_limits<Micros>::infinity()) ++least;
  for (int m : {least, least + 5, 500}) {
    int next = 5;
    Micros recomputed = 0;
    for (const auto& [block, op] : table.backward(m)) {
      if (op == 1) CHECK(block == next--);
      if (op == 0) recomputed += chain.blocks[block].none_us;
    }
    CHECK(next == -1);
    CHECK(recomputed == table.time_us(m));
  }
}

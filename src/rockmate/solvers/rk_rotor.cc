#include "rockmate/solvers/rk_rotor.h"

#include <algorithm>
#include <limits>

namespace rockmate {
namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();

}  // namespace

RotorTable::RotorTable(std::vector<RotorBlock> blocks, Bytes most_bytes, int steps, const std::atomic<bool>* stop,
                       std::atomic<int>* done)
    : blocks_(std::move(blocks)), steps_(steps), unit_(std::max<Bytes>((most_bytes + steps - 1) / steps, 1)) {
  const std::size_t count = blocks_.size();
  opt_.assign(count * (count + 1) / 2 * (static_cast<std::size_t>(steps_) + 1), kNever);
  for (int length = 0; length < num_blocks(); ++length) {
    for (int s = 0; s + length < num_blocks(); ++s) {
      if (stop != nullptr && stop->load(std::memory_order_relaxed)) return;
      fill(s, s + length);
    }
    if (done != nullptr) done->fetch_add(1, std::memory_order_relaxed);
  }
}

// Rows with the same t lie together: the inner loop of a checkpoint reads (s', t) and (s, s' - 1).
std::size_t RotorTable::row(int s, int t) const {
  const std::size_t index = static_cast<std::size_t>(t) * (t + 1) / 2 + s;
  return index * (static_cast<std::size_t>(steps_) + 1);
}

int RotorTable::steps_for(Bytes bytes) const {
  return static_cast<int>(std::min<Bytes>(std::max<Bytes>((bytes + unit_ - 1) / unit_, 0), steps_ + 1));
}

Micros RotorTable::time_us(int step) const { return opt_[row(0, num_blocks() - 1) + step]; }

// Calls consider(choice, least memory, memory taken from the later part); choice.time_us is the time of this block alone.
template <typename Consider>
void RotorTable::for_each_choice(int s, int t, Consider consider) const {
  const bool again = !is_first_pass(t);
  const RotorBlock& block = blocks_[s];
  const Bytes released = again ? blocks_[t].released_bytes : 0;
  const Bytes gradients = again ? blocks_[t].gradient_bytes : 0;
  for (int o = 0; o < static_cast<int>(block.options->size()); ++o) {
    const BlockOption& option = (*block.options)[o];
    Micros time_us = option.recompute_us;
    Bytes peak = option.backward_peak_bytes + block.passing_bytes;
    Bytes taken = 0;
    if (s < t) {
      time_us += again ? option.forward_us : 0;
      peak = std::max(peak, option.forward_peak_bytes + gradients);
      taken = option.saved_bytes + block.output_bytes;
    } else {
      time_us += again ? option.lone_us : 0;
      if (!again || !option.lone_ops.empty()) peak = std::max(peak, option.forward_peak_bytes + gradients);
    }
    consider(Choice{Choice::Kind::kOption, o, static_cast<float>(time_us)}, steps_for(peak - released), steps_for(taken));
  }
  Micros time_us = 0;
  Bytes peak = 0, before = 0;
  for (int next = s + 1; next <= t; ++next) {
    const RotorBlock& passed = blocks_[next - 1];
    time_us += again ? passed.none_us : 0;
    peak = std::max(peak, before + passed.none_peak_bytes + gradients);
    before = passed.output_bytes;
    consider(Choice{Choice::Kind::kCheckpoint, next, static_cast<float>(time_us)}, steps_for(peak - released),
             steps_for(passed.output_bytes));
  }
}

void RotorTable::fill(int s, int t) {
  float* best = opt_.data() + row(s, t);
  for_each_choice(s, t, [&](const Choice& choice, int least, int taken) {
    const int from = std::max(least, taken);
    if (choice.kind == Choice::Kind::kOption && s == t) {
      for (int m = least; m <= steps_; ++m) best[m] = std::min(best[m], choice.time_us);
    } else if (choice.kind == Choice::Kind::kOption) {
      const float* later = opt_.data() + row(s + 1, t) - taken;
      for (int m = from; m <= steps_; ++m) best[m] = std::min(best[m], choice.time_us + later[m]);
    } else {
      const float* later = opt_.data() + row(choice.index, t) - taken;
      const float* earlier = opt_.data() + row(s, choice.index - 1);
      for (int m = from; m <= steps_; ++m) best[m] = std::min(best[m], choice.time_us + later[m] + earlier[m]);
    }
  });
}

RotorTable::Choice RotorTable::choose(int s, int t, int m) const {
  Choice best;
  best.time_us = kNever;
  for_each_choice(s, t, [&](const Choice& choice, int least, int taken) {
    if (m < least || m < taken) return;
    float time_us = choice.time_us;
    if (choice.kind == Choice::Kind::kCheckpoint) {
      time_us += opt_[row(choice.index, t) + m - taken];
      time_us += opt_[row(s, choice.index - 1) + m];
    } else if (s < t) {
      time_us += opt_[row(s + 1, t) + m - taken];
    }
    if (time_us < best.time_us) best = {choice.kind, choice.index, time_us};
  });
  return best;
}

void RotorTable::walk(int s, int t, int m, std::vector<std::pair<int, OpId>>& sequence) const {
  const bool again = !is_first_pass(t);
  const auto run = [&](int block, std::span<const OpId> ops) {
    for (OpId op : ops) sequence.emplace_back(block, op);
  };
  const Choice choice = choose(s, t, m);
  if (choice.kind == Choice::Kind::kCheckpoint) {
    if (again) {
      for (int k = s; k < choice.index; ++k) run(k, blocks_[k].none_ops);
    }
    walk(choice.index, t, m - steps_for(blocks_[choice.index - 1].output_bytes), sequence);
    walk(s, choice.index - 1, m, sequence);
    return;
  }
  const BlockOption& option = (*blocks_[s].options)[choice.index];
  if (again) run(s, s < t ? std::span(option.forward_ops) : std::span(option.lone_ops));
  if (s < t) walk(s + 1, t, m - steps_for(option.saved_bytes + blocks_[s].output_bytes), sequence);
  run(s, option.backward());
}

std::vector<std::pair<int, OpId>> RotorTable::backward(int step) const {
  std::vector<std::pair<int, OpId>> sequence;
  walk(0, num_blocks() - 1, step, sequence);
  return sequence;
}

}  // namespace rockmate

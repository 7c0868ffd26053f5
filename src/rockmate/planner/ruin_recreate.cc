#include "rockmate/planner/ruin_recreate.h"

#include <algorithm>
#include <chrono>

#include "rockmate/planner/descents.h"
#include "rockmate/schedule/schedule.h"
#include "rockmate/solvers/dice.h"
#include "rockmate/solvers/polish.h"
#include "rockmate/solvers/sequence_memory.h"
#include "rockmate/solvers/share_done.h"

namespace rockmate {
namespace {

constexpr double kThreshold = 0.0013;                   // of the plain step, at first
constexpr double kLeastRuin = 0.005, kMostRuin = 0.15;  // of the ops, or of the sequence
constexpr int kLeastWidth = 3;                          // ops
constexpr std::int64_t kLeastRounds = 30;               // of the polishing; more would take longer than the descent
constexpr std::int64_t kOpsPerRound = 10;
constexpr double kHeat = 0.05;

class RuinRecreate {
 public:
  RuinRecreate(const TrainingGraph& graph, const std::vector<OpId>& sequence, const RuinOptions& options)
      : graph_(graph),
        options_(options),
        dice_(options.seed),
        plain_us_(sequence_time_us(graph, store_all_sequence(graph))),
        present_(sequence),
        present_us_(sequence_time_us(graph, sequence)),
        best_(sequence),
        best_us_(present_us_) {}

  std::vector<OpId> run() {
    if (SequenceMemory(graph_, best_).peak_bytes() > options_.budget_bytes) return std::move(best_);
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t round = 0; !stopped(); ++round) {
      const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begin;
      const double done = share_done(gone.count() / options_.seconds, round, options_.max_rounds);
      if (done >= 1) break;
      seconds_left_ = options_.seconds - gone.count();
      one_round(kThreshold * (1 - done) * plain_us_);
    }
    return std::move(best_);
  }

 private:
  bool stopped() const { return options_.stop != nullptr && *options_.stop; }

  void one_round(Micros threshold_us) {
    const std::uint64_t shake = dice_.next() | 1;  // not 0, which is the plain descent; drawn first, whatever the compiler
    const std::vector<OpId> within = descent(graph_, ruined(), options_.budget_bytes, options_.stop, shake);
    PolishOptions how;
    how.budget_bytes = options_.budget_bytes;
    how.seconds = std::max(seconds_left_, 1e-3);
    how.max_rounds = std::max(graph_.num_ops() / kOpsPerRound, kLeastRounds);
    how.seed = dice_.next();
    how.heat = kHeat;
    how.gradual = false;
    how.stop = options_.stop;
    PolishResult result = polish(graph_, within, how);
    if (result.peak_bytes > options_.budget_bytes || result.time_us > present_us_ + dice_.share() * threshold_us) return;
    present_ = std::move(result.sequence);
    present_us_ = result.time_us;
    if (present_us_ < best_us_) {
      best_ = present_;
      best_us_ = present_us_;
    }
  }

  // The present sequence without some of its recomputations. What they made is read from the computation before.
  std::vector<OpId> ruined() {
    switch (dice_.below(3)) {
      case 0: {
        const auto [begin, end] = stretch(graph_.num_ops());
        return without([&](int, OpId op) { return begin <= op && op < end; });
      }
      case 1: {
        const auto [begin, end] = stretch(static_cast<int>(present_.size()));
        return without([&](int position, OpId) { return begin <= position && position < end; });
      }
      default: {
        const double share = size();
        return without([&](int, OpId) { return dice_.share() < share; });
      }
    }
  }

  double size() { return kLeastRuin + (kMostRuin - kLeastRuin) * dice_.share(); }

  std::pair<int, int> stretch(int length) {
    const int width = std::max(static_cast<int>(length * size()), kLeastWidth), begin = dice_.below(length);
    return {begin, begin + width};
  }

  template <typename IsRuined>
  std::vector<OpId> without(const IsRuined& is_ruined) const {
    std::vector<OpId> kept;
    std::vector<bool> is_computed(graph_.num_ops(), false);
    for (int i = 0; i < static_cast<int>(present_.size()); ++i) {
      const OpId op = present_[i];
      if (is_computed[op] && is_ruined(i, op)) continue;
      is_computed[op] = true;
      kept.push_back(op);
    }
    return kept;
  }

  const TrainingGraph& graph_;
  const RuinOptions& options_;
  Dice dice_;
  Micros plain_us_;
  std::vector<OpId> present_;
  Micros present_us_;
  std::vector<OpId> best_;
  Micros best_us_;
  double seconds_left_ = 0;
};

}  // namespace

std::vector<OpId> ruin_and_recreate(const TrainingGraph& graph, const std::vector<OpId>& sequence, const RuinOptions& options) {
  return RuinRecreate(graph, sequence, options).run();
}

}  // namespace rockmate

#include "rockmate/solvers/evict.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "rockmate/solvers/dice.h"
#include "rockmate/solvers/sequence_memory.h"

namespace rockmate {
namespace {

constexpr int kMaxChain = 400;          // recomputed ops of one move
constexpr int kMaxFailures = 24;        // moves taken back at one peak before giving up
constexpr Bytes kSmallInput = 8;        // an input this many times smaller is kept across the peak, not recomputed
constexpr int kOpsPerExtraMove = 1000;  // on large graphs several moves are made between two counts of the memory
constexpr double kShake = 1.5;          // the range of the logarithm that scores are multiplied by

struct Move {
  ValueId value = kNone;
  int before = 0;  // position of the next use
  std::vector<OpId> recompute;
  double score = 0;
};

class Descent {
 public:
  Descent(const TrainingGraph& graph, std::vector<OpId> sequence, std::uint64_t seed)
      : graph_(graph),
        sequence_(std::move(sequence)),
        dice_(seed == 0 ? std::nullopt : std::optional<Dice>(seed)),
        num_forward_(num_forward_ops(graph)),
        memory_(graph, sequence_),
        stamp_(graph.num_ops(), 0) {}

  const std::vector<OpId>& sequence() const { return sequence_; }
  Bytes peak_bytes() const { return memory_.peak_bytes(); }

  // One or several moves that lower the peak, or the number of positions that hold it; false when there is none.
  bool step() {
    std::vector<Move> moves = moves_at_peak();
    std::sort(moves.begin(), moves.end(),
              [](const Move& a, const Move& b) { return a.score != b.score ? a.score > b.score : a.value < b.value; });
    const std::size_t batch = 1 + sequence_.size() / kOpsPerExtraMove;
    if (batch > 1 && moves.size() > batch && attempt({moves.begin(), moves.begin() + static_cast<long>(batch)})) return true;
    int failures = 0;
    for (const Move& move : moves) {
      if (attempt({move})) return true;
      if (++failures == kMaxFailures) break;
    }
    return false;
  }

 private:
  std::vector<Move> moves_at_peak() {
    const int peak = memory_.peak_position();
    std::vector<Move> moves;
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      const Value& value = graph_.values[v];
      if (charged_bytes(value) == 0 || value.producer == kNone || value.retention == Retention::kUntilStepEnd) continue;
      if (!may_repeat(graph_, value.producer)) continue;
      const auto events = memory_.events(v);
      const auto next = std::lower_bound(events.begin(), events.end(), peak,
                                         [](const SequenceMemory::Event& e, int position) { return e.position < position; });
      const bool idle = next != events.begin() && next != events.end() && next->position != peak && !next->is_write;
      if (!idle || next->position < num_forward_) continue;
      Move move{.value = v, .before = next->position, .recompute = {}, .score = 0};
      if (evaluate(move)) moves.push_back(std::move(move));
    }
    return moves;
  }

  // Fills in what must be recomputed; false when the move frees nothing.
  bool evaluate(Move& move) {
    ++stamp_now_;
    const Value& value = graph_.values[move.value];
    Bytes freed = value.bytes;
    Micros time_us = 0;
    std::vector<OpId> pending{value.producer};
    stamp_[value.producer] = stamp_now_;
    while (!pending.empty()) {
      const OpId op = pending.back();
      pending.pop_back();
      move.recompute.push_back(op);
      time_us += graph_.ops[op].time_us;
      if (static_cast<int>(move.recompute.size()) > kMaxChain) return false;
      for (ValueId input : graph_.ops[op].inputs) {
        if (!fetch(input, move, freed, pending)) return false;
      }
    }
    if (freed <= 0) return false;
    move.score = static_cast<double>(freed) / (time_us + 1e-9);
    if (dice_) move.score *= std::exp(kShake * (dice_->share() - 0.5));
    return true;
  }

  // How an input gets to `move.before`: it is there, it stays longer, or it is recomputed too. False when it can't be had.
  bool fetch(ValueId input, const Move& move, Bytes& freed, std::vector<OpId>& pending) {
    const Value& value = graph_.values[input];
    if (is_resident(value.kind) || value.retention == Retention::kUntilStepEnd || value.producer == kNone) return true;
    if (stamp_[value.producer] == stamp_now_) return true;
    const auto events = memory_.events(input);
    const auto next = std::lower_bound(events.begin(), events.end(), move.before,
                                       [](const SequenceMemory::Event& e, int position) { return e.position < position; });
    if (next != events.end() && !next->is_write && input != move.value) return true;
    if (next == events.begin()) return false;
    const int last = std::prev(next)->position;
    const bool across_peak = last < memory_.peak_position();
    const Bytes moved = graph_.values[move.value].bytes;
    const bool can_recompute = may_repeat(graph_, value.producer);
    if (!across_peak) {
      if (memory_.max_inside(last + 1, move.before) + value.bytes < memory_.peak_bytes()) return true;
    } else if (value.bytes * kSmallInput <= moved || (!can_recompute && value.bytes < freed)) {
      freed -= value.bytes;
      return true;
    }
    if (!can_recompute) return false;
    stamp_[value.producer] = stamp_now_;
    pending.push_back(value.producer);
    return true;
  }

  bool attempt(std::vector<Move> moves) {
    std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) { return a.before < b.before; });
    std::vector<OpId> changed;
    changed.reserve(sequence_.size() + 16);
    int copied = 0;
    for (std::size_t i = 0; i < moves.size();) {
      const int before = moves[i].before;
      changed.insert(changed.end(), sequence_.begin() + copied, sequence_.begin() + before);
      std::set<OpId> recompute;
      for (; i < moves.size() && moves[i].before == before; ++i) {
        recompute.insert(moves[i].recompute.begin(), moves[i].recompute.end());
      }
      changed.insert(changed.end(), recompute.begin(), recompute.end());
      copied = before;
    }
    changed.insert(changed.end(), sequence_.begin() + copied, sequence_.end());
    SequenceMemory after(graph_, changed);
    const bool lower = after.peak_bytes() < memory_.peak_bytes() ||
                       (after.peak_bytes() == memory_.peak_bytes() && after.num_at_peak() < memory_.num_at_peak());
    if (!lower) return false;
    sequence_ = std::move(changed);
    memory_ = std::move(after);
    return true;
  }

  const TrainingGraph& graph_;
  std::vector<OpId> sequence_;
  std::optional<Dice> dice_;  // where scores are shaken
  int num_forward_;
  SequenceMemory memory_;
  std::vector<int> stamp_;
  int stamp_now_ = 0;
};

}  // namespace

std::vector<OpId> evict(const TrainingGraph& graph, std::vector<OpId> sequence, Bytes target_bytes,
                        const std::function<bool(const std::vector<OpId>&, Bytes)>& on_lower, std::uint64_t seed) {
  Descent descent(graph, std::move(sequence), seed);
  while (descent.peak_bytes() > target_bytes) {
    const Bytes before = descent.peak_bytes();
    if (!descent.step()) break;
    if (descent.peak_bytes() < before && on_lower && !on_lower(descent.sequence(), descent.peak_bytes())) break;
  }
  return descent.sequence();
}

}  // namespace rockmate

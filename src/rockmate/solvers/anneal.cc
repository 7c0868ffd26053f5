#include "rockmate/solvers/anneal.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "rockmate/solvers/dice.h"
#include "rockmate/solvers/position_line.h"
#include "rockmate/solvers/share_done.h"

namespace rockmate {
namespace {

using InstanceId = PositionLine::InstanceId;

constexpr double kCoolest = 0.015;    // the last temperature, in units of an op's mean time
constexpr double kWeight = 0.5;       // of the excess at temperature 1, in units of the mean time for one unit of excess
constexpr double kWeightPower = 1.5;  // the weight grows with this power of 1 / temperature
constexpr double kEnd = 0.9;          // from this part of the run on what is left of the excess is driven out ...
constexpr double kEndGrowth = 1e3;    // ... with a weight that grows by so much more
constexpr double kLongHold = 0.05;    // unit of excess: a mean value held over this share of the sequence
constexpr double kMoves = 0.35, kAdds = 0.3, kSwaps = 0.2;  // shares of the trials; the rest takes a recomputation out
constexpr double kGuided = 0.9;                             // of the adds: where much memory is held
constexpr int kTournament = 4;                              // positions looked at for that
constexpr int kIdleTries = 12;                              // reads looked at for a value that lies idle
constexpr double kChain = 0.3;                              // an input that is gone is recomputed too, not kept longer
constexpr int kMaxChain = 30;                               // ops added in one trial
constexpr int kTrialsPerCheck = 128;

class Anneal {
 public:
  Anneal(const TrainingGraph& graph, const std::vector<OpId>& sequence, const AnnealOptions& options)
      : graph_(graph),
        options_(options),
        line_(graph, sequence, options.budget_bytes),
        dice_(options.seed),
        stamp_(graph.num_ops(), 0) {
    Micros plain_us = 0;
    for (const Op& op : graph.ops) plain_us += op.time_us;
    mean_us_ = plain_us / std::max<OpId>(graph.num_ops(), 1);
    double bytes = 0;
    int count = 0;
    for (const Value& value : graph.values) {
      bytes += static_cast<double>(charged_bytes(value));
      count += charged_bytes(value) > 0;
    }
    unit_ = std::max(bytes / std::max(count, 1) * std::max(line_.length() * kLongHold, 1.0), 1.0);
  }

  AnnealResult run() {
    const auto begin = std::chrono::steady_clock::now();
    double done = options_.seconds > 0 && line_.length() > line_.first_position() ? 0 : 1;
    for (std::int64_t trial = 0; done < 1; ++trial) {
      if (trial % kTrialsPerCheck == 0) {
        remember();
        if (options_.stop != nullptr && *options_.stop) break;
        const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begin;
        done = share_done(gone.count() / options_.seconds, trial, options_.max_trials);
        cool(std::min(done, 1.0));
      }
      best_.trials = trial + 1;
      one_trial();
    }
    remember();
    if (best_.sequence.empty()) note_down();
    return std::move(best_);
  }

 private:
  struct Edit {
    enum class Kind : std::uint8_t { kInsert, kErase, kMove } kind;
    OpId op;
    InstanceId id;
    int position;  // of the move: where it was
  };

  void cool(double done) {
    const double temperature = options_.heat * std::pow(std::min(kCoolest / options_.heat, 1.0), done);
    const double end = std::pow(kEndGrowth, std::max(done - kEnd, 0.0) / (1 - kEnd));
    temperature_ = temperature * mean_us_;
    weight_ = kWeight * mean_us_ / unit_ * std::pow(temperature, -kWeightPower) * end;
  }

  double energy() const { return line_.time_us() + weight_ * static_cast<double>(line_.excess_bytes()); }

  void remember() {
    if (line_.excess_bytes() > 0) return;
    if (best_.sequence.empty() || line_.time_us() < best_.time_us - 1e-9 * mean_us_) note_down();
  }

  void note_down() {
    best_.sequence = line_.sequence();
    best_.peak_bytes = line_.peak_bytes();
    best_.time_us = line_.time_us();
  }

  void one_trial() {
    log_.clear();
    limit_ = energy() + 1e-12 * mean_us_ - temperature_ * std::log(1 - dice_.share());
    const double kind = dice_.share();
    const bool is_made = kind < kMoves                    ? move()
                         : kind < kMoves + kAdds          ? add()
                         : kind < kMoves + kAdds + kSwaps ? swap()
                                                          : take_out();
    if (!is_made || energy() > limit_) undo();
  }

  void undo() {
    for (; !log_.empty(); log_.pop_back()) {
      const Edit& edit = log_.back();
      switch (edit.kind) {
        case Edit::Kind::kInsert:
          line_.erase(edit.id);
          break;
        case Edit::Kind::kErase:
          line_.insert(edit.op, edit.position);
          break;
        case Edit::Kind::kMove:
          line_.move(edit.id, edit.position);
          break;
      }
    }
  }

  int any_position() { return dice_.between(line_.first_position(), line_.length() - 1); }

  // An op to another place between what it reads and what reads it.
  bool move() {
    const InstanceId id = line_.at(any_position());
    const auto [first, last] = line_.window_of(id);
    if (first >= last) return false;
    const int here = line_.position_of(id);
    const OpId op = line_.op_of(id);
    int target = here;
    const double where = dice_.share();
    if (where < 0.25) {
      target = dice_.between(first, last);
    } else if (where < 0.5) {
      const int reach = 1 + dice_.below(12);
      target = dice_.between(std::max(first, here - reach), std::min(last, here + reach));
    } else if (where < 0.75) {
      target = next_use(op, here) - 1;
    } else {  // next to another use of one of its inputs
      const auto& inputs = graph_.ops[op].inputs;
      if (inputs.empty()) return false;
      const auto& events = line_.events(inputs[dice_.below(static_cast<int>(inputs.size()))]);
      if (events.empty()) return false;
      const int use = line_.position_of(events[dice_.below(static_cast<int>(events.size()))].id);
      target = dice_.below(2) == 0 ? use : use + (use < here ? 1 : -1);
    }
    if (target == here || target < first || target > last) return false;
    log_.push_back({Edit::Kind::kMove, op, id, here});
    line_.move(id, target);
    return true;
  }

  int next_use(OpId op, int position) const {
    int next = line_.length();
    for (ValueId v : graph_.ops[op].outputs) {
      const auto& events = line_.events(v);
      const int index = line_.event_at(v, position) + 1;
      if (index < static_cast<int>(events.size())) next = std::min(next, line_.position_of(events[index].id));
    }
    return next;
  }

  bool take_out() {
    const auto& repeats = line_.repeats();
    if (repeats.empty()) return false;
    const InstanceId id = repeats[dice_.below(static_cast<int>(repeats.size()))];
    if (!line_.can_erase(id)) return false;
    log_.push_back({Edit::Kind::kErase, line_.op_of(id), id, line_.position_of(id)});
    line_.erase(id);
    return true;
  }

  // Takes a recomputation out, and where that made memory scarcest puts another one in.
  bool swap() {
    if (!take_out()) return false;
    const Edit gone = log_.back();
    int scarcest = std::min(gone.position, line_.length() - 1);
    for (ValueId v : graph_.ops[gone.op].outputs) {
      const int index = line_.event_at(v, gone.position);
      if (index == 0) continue;
      const int last_use = line_.position_of(line_.events(v)[index - 1].id);
      const int first = std::max(last_use + 1, line_.first_position());
      if (first >= gone.position) continue;
      const int there = line_.scarcest(first, gone.position - 1);
      if (line_.held_bytes(there) > line_.held_bytes(scarcest)) scarcest = there;
    }
    return line_.held_bytes(scarcest) <= line_.budget_bytes() || add_across(scarcest);
  }

  bool add() {
    if (line_.excess_bytes() == 0 || dice_.share() >= kGuided) return add_before(any_position(), line_.length());
    int position = any_position();
    for (int i = 1; i < kTournament; ++i) {
      const int other = any_position();
      if (line_.held_bytes(other) > line_.held_bytes(position)) position = other;
    }
    return add_across(position);
  }

  // Recomputes some value that lies idle at the position, for a read behind it: one that follows soon more likely.
  bool add_across(int position) {
    const int behind = line_.length() - 1 - position;
    for (int i = 0; i < kIdleTries && behind > 0; ++i) {
      if (add_before(position + 1 + dice_.below(std::min(4 << dice_.below(8), behind)), position)) return true;
    }
    return false;
  }

  // Recomputes one of the values that the op at `where` reads, when it was last used before `idle_at`.
  bool add_before(int where, int idle_at) {
    const auto& inputs = graph_.ops[line_.op_of(line_.at(where))].inputs;
    if (inputs.empty()) return false;
    const ValueId v = inputs[dice_.below(static_cast<int>(inputs.size()))];
    const OpId producer = graph_.values[v].producer;
    if (producer == kNone || !may_repeat(graph_, producer)) return false;
    const int index = line_.event_at(v, where);
    if (index == 0) return false;
    const auto& last = line_.events(v)[index - 1];
    const int last_use = line_.position_of(last.id);
    if (last_use >= std::min(where - 1, idle_at)) return false;
    if (last.is_write && last_use >= line_.first_position()) return false;  // moving that one does as well
    const int earliest = std::max(last_use + 1, line_.first_position());
    return recompute(producer, dice_.share() < 0.3 ? dice_.between(earliest, where) : where);
  }

  bool recompute(OpId op, int target) {
    ++stamp_now_;
    chain_.clear();
    chain_time_us_ = line_.time_us();
    chain_frees_ = 0;
    if (!need(op, target)) return false;
    for (std::size_t i = 0; i < chain_.size(); ++i) {
      for (ValueId v : graph_.ops[chain_[i]].inputs) {
        if (!fetch(v, target)) return false;
      }
    }
    std::sort(chain_.begin(), chain_.end());
    for (OpId each : chain_) {
      const InstanceId id = line_.insert(each, target);
      log_.push_back({Edit::Kind::kInsert, each, id, target});
      ++target;
    }
    return true;
  }

  bool need(OpId op, int target) {
    if (stamp_[op] == stamp_now_) return true;
    if (!may_repeat(graph_, op) || static_cast<int>(chain_.size()) >= kMaxChain) return false;
    if (graph_.ops[op].is_random && target <= line_.position_of(line_.instances_of(op).front())) return false;
    stamp_[op] = stamp_now_;
    chain_.push_back(op);
    chain_time_us_ += graph_.ops[op].time_us;
    for (ValueId v : graph_.ops[op].outputs) chain_frees_ += excess_freed_by_remaking(v, target);
    return may_stay();
  }

  // A bound on what the chain comes to, which costs far less than to put it in and take it out again: no more excess is freed
  // than by each output for itself, and what its ops hold is not counted.
  bool may_stay() const {
    const auto excess = static_cast<double>(std::max<Bytes>(line_.excess_bytes() - chain_frees_, 0));
    return chain_time_us_ + weight_ * excess <= limit_;
  }

  // By not holding it where it lies idle around the target now.
  Bytes excess_freed_by_remaking(ValueId v, int target) const {
    const auto& events = line_.events(v);
    const int index = line_.event_at(v, target);
    if (index == 0 || index == static_cast<int>(events.size()) || events[index].is_write) return 0;
    return line_.excess_freed(line_.position_of(events[index - 1].id) + 1, target - 1, charged_bytes(graph_.values[v]));
  }

  // How an input gets to the target: it is there, it is kept longer, or it is recomputed too.
  bool fetch(ValueId v, int target) {
    const auto& events = line_.events(v);
    if (events.empty()) return true;  // resident
    const Value& value = graph_.values[v];
    if (value.producer != kNone && stamp_[value.producer] == stamp_now_) return true;
    const int index = line_.event_at(v, target);
    if (index == 0) return false;
    if (index < static_cast<int>(events.size()) && !events[index].is_write) return true;
    if (value.retention == Retention::kUntilStepEnd || value.producer == kNone || !may_repeat(graph_, value.producer))
      return true;
    return dice_.share() >= kChain || need(value.producer, target);
  }

  const TrainingGraph& graph_;
  const AnnealOptions& options_;
  PositionLine line_;
  Dice dice_;
  Micros mean_us_ = 0;
  double unit_ = 1;  // bytes x positions
  double temperature_ = 0, weight_ = 0;
  double limit_ = 0;  // the highest energy at which the present trial stays
  AnnealResult best_;
  std::vector<Edit> log_;
  std::vector<OpId> chain_;   // ops to be put in together
  Micros chain_time_us_ = 0;  // of the whole with it
  Bytes chain_frees_ = 0;     // of the excess, at most
  std::vector<std::int64_t> stamp_;
  std::int64_t stamp_now_ = 0;
};

}  // namespace

AnnealResult anneal(const TrainingGraph& graph, const std::vector<OpId>& sequence, const AnnealOptions& options) {
  return Anneal(graph, sequence, options).run();
}

}  // namespace rockmate

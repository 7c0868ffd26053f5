#include "rockmate/solvers/polish.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "rockmate/solvers/dice.h"
#include "rockmate/solvers/share_done.h"
#include "rockmate/solvers/time_line.h"

namespace rockmate {
namespace {

constexpr int kMaxChain = 24;           // ops recomputed for one dropped value
constexpr int kMaxRepairs = 40;         // values dropped in one round
constexpr int kCandidates = 6;          // values tried for one drop
constexpr int kFillTries = 10;          // recomputations tried to take out in one round
constexpr int kCrowded = 100;           // chains without room, then the line is spread again
constexpr double kPenalty = 20;         // energy of an excess of the whole budget, in plain steps; any excess costs one more
constexpr double kCoolest = 1.0 / 300;  // last temperature over the first

class Polish {
 public:
  Polish(const TrainingGraph& graph, const std::vector<OpId>& sequence, const PolishOptions& options)
      : graph_(graph),
        options_(options),
        line_(graph, sequence),
        dice_(options.seed),
        stamp_(graph.num_ops(), 0),
        start_peak_(line_.peak_bytes()),
        budget_(options.budget_bytes) {
    for (const Op& op : graph.ops) plain_us_ += op.time_us;
    mean_us_ = plain_us_ / std::max<OpId>(graph.num_ops(), 1);
    penalty_ = kPenalty * plain_us_ / static_cast<double>(std::max<Bytes>(options.budget_bytes, 1));
    best_ = {sequence, line_.peak_bytes(), line_.time_us(), 0};
    best_energy_ = energy();
    if (options.gradual) budget_ = std::max(start_peak_, options.budget_bytes);
  }

  PolishResult run() {
    const auto begin = std::chrono::steady_clock::now();
    double done = options_.seconds > 0 ? 0 : 1;
    for (std::int64_t round = 0; done < 1; ++round) {
      if (round % 64 == 0) {
        const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begin;
        done = share_done(gone.count() / options_.seconds, round, options_.max_rounds);
        if (options_.stop != nullptr && *options_.stop) break;
        lower_budget(done);
        temperature_ = options_.heat * mean_us_ * std::pow(kCoolest, std::min(done, 1.0));
      }
      best_.rounds = round + 1;
      one_round();
    }
    remember();
    return std::move(best_);
  }

 private:
  struct Edit {
    OpId op;
    int slot;
    bool inserted;
  };

  // A start above the budget is brought down over the first part of the run, so that few slots at a time need repair.
  void lower_budget(double done) {
    constexpr double kPart = 0.4;
    const Bytes target = options_.budget_bytes;
    if (budget_ == target) return;
    const double left = std::max(1 - done / kPart, 0.0);
    budget_ = target + static_cast<Bytes>(left * static_cast<double>(start_peak_ - target));
    at_best_ = true;
    best_energy_ = energy();
  }

  double energy() const {
    const Bytes excess = std::max<Bytes>(line_.peak_bytes() - budget_, 0);
    return line_.time_us() + (excess > 0 ? plain_us_ : 0) + penalty_ * static_cast<double>(excess);
  }

  void one_round() {
    log_.clear();
    const double before = energy();
    disturb();
    repair();
    fill();
    const double after = energy(), rise = after - before;
    if (rise > 1e-9 * plain_us_ && !(dice_.share() < std::exp(-rise / temperature_))) {
      undo(0);
    } else if (!log_.empty()) {
      if (at_best_ && rise > 0) {  // leaving the best: note it down first
        std::vector<Edit> edits = log_;
        undo(0);
        remember();
        for (const Edit& edit : edits) edit.inserted ? insert(edit.op, edit.slot) : erase(line_.at(edit.slot));
      }
      if (after < best_energy_ - 1e-9 * plain_us_) {
        best_energy_ = after;
        at_best_ = true;
      }
    }
    if (crowded_ >= kCrowded) {
      remember();
      line_.respread();
      crowded_ = 0;
    }
  }

  // Notes the present sequence down as the best, if it is.
  void remember() {
    if (!at_best_) return;
    at_best_ = false;
    best_.sequence = line_.sequence();
    best_.peak_bytes = line_.peak_bytes();
    best_.time_us = line_.time_us();
  }

  void insert(OpId op, int slot) {
    line_.insert(op, slot);
    log_.push_back({op, slot, true});
  }

  void erase(TimeLine::InstanceId id) {
    log_.push_back({line_.op_of(id), line_.slot_of(id), false});
    line_.erase(id);
  }

  void undo(std::size_t down_to) {
    while (log_.size() > down_to) {
      const Edit edit = log_.back();
      log_.pop_back();
      if (edit.inserted) {
        line_.erase(line_.at(edit.slot));
      } else {
        line_.insert(edit.op, edit.slot);
      }
    }
  }

  void disturb() {
    const double kind = dice_.share();
    if (kind < 0.5 && !line_.repeats().empty()) {
      take_some_out();
    } else if (kind < 0.8) {
      for (int i = 0; i < 4 && !move_one(); ++i) continue;
    } else if (!line_.gap_first().empty()) {
      for (int i = 0; i < 8; ++i) {
        const int gap = dice_.below(static_cast<int>(line_.gap_first().size()));
        if (line_.gap_last()[gap] - line_.gap_first()[gap] > 1 && drop(gap)) break;
      }
    }
  }

  void take_some_out() {
    const auto& repeats = line_.repeats();
    const TimeLine::InstanceId first = repeats[dice_.below(static_cast<int>(repeats.size()))];
    int slot = line_.slot_of(first);
    const int count = 1 + dice_.below(3);
    if (line_.can_erase(first)) erase(first);
    for (int i = 1; i < count && !repeats.empty(); ++i) {
      TimeLine::InstanceId other = repeats[dice_.below(static_cast<int>(repeats.size()))];
      if (dice_.share() < 0.6) {  // one close by
        for (int k = 0; k < 6; ++k) {
          const TimeLine::InstanceId third = repeats[dice_.below(static_cast<int>(repeats.size()))];
          if (std::abs(line_.slot_of(third) - slot) < std::abs(line_.slot_of(other) - slot)) other = third;
        }
      }
      slot = line_.slot_of(other);
      if (line_.can_erase(other)) erase(other);
    }
  }

  // An op to another place between what it reads and what reads it.
  bool move_one() {
    const auto& all = line_.all();
    if (all.empty()) return false;
    const TimeLine::InstanceId id = all[dice_.below(static_cast<int>(all.size()))];
    const OpId op = line_.op_of(id);
    if (graph_.ops[op].is_random) return false;
    const int slot = line_.slot_of(id);
    const auto [first, last] = window_of(op, slot);
    int last_use = first - 1;  // the latest other use of an input: behind it, this op keeps the input
    for (ValueId v : graph_.ops[op].inputs) {
      const int index = line_.event_at(v, slot);
      if (index > 0) last_use = std::max(last_use, line_.events(v)[index - 1].slot);
    }
    if (first >= last) return false;
    int target = 0;
    const double where = dice_.share();
    if (where < 0.3) {
      target = dice_.between(std::max(line_.slot_before(last + 1) + 1, first), last);  // right before its reader
    } else if (where < 0.5 && last_use >= first) {
      int end = last_use + 1;
      while (end < last && line_.at(end) == kNone) ++end;
      target = dice_.between(last_use + 1, std::max(end - 1, last_use + 1));  // right behind the last use of an input
    } else {
      target = dice_.between(first, last);
    }
    return target >= first && target <= last && move(id, target);
  }

  // Drops the value of a gap there and recomputes it before the read that ends the gap, with what that needs.
  bool drop(int gap) {
    const int reader = line_.gap_last()[gap];
    ++stamp_now_;
    chain_.clear();
    if (!need(graph_.values[line_.gap_value(gap)].producer, reader)) return false;
    for (std::size_t i = 0; i < chain_.size(); ++i) {
      for (ValueId v : graph_.ops[chain_[i]].inputs) {
        if (!fetch(v, reader)) return false;
      }
    }
    const int before = line_.slot_before(reader), count = static_cast<int>(chain_.size());
    if (reader - before <= count) {
      ++crowded_;
      return false;
    }
    std::sort(chain_.begin(), chain_.end());
    for (int i = 0; i < count; ++i) {
      const int slot = before + static_cast<int>(static_cast<std::int64_t>(reader - before) * (i + 1) / (count + 1));
      if (!line_.can_insert(chain_[i], slot)) return false;  // the caller undoes what was put in
      insert(chain_[i], slot);
    }
    return true;
  }

  bool need(OpId op, int reader) {
    if (stamp_[op] == stamp_now_) return true;
    if (!may_repeat(graph_, op) || static_cast<int>(chain_.size()) >= kMaxChain) return false;
    if (graph_.ops[op].is_random && reader < line_.slot_of(line_.instances_of(op).front())) return false;
    stamp_[op] = stamp_now_;
    chain_.push_back(op);
    return true;
  }

  // How an input gets to the reader's place: it is there, it is kept longer, or it is recomputed too.
  bool fetch(ValueId v, int reader) {
    const auto events = line_.events(v);
    if (events.empty()) return true;  // resident
    const Value& value = graph_.values[v];
    if (value.producer != kNone && stamp_[value.producer] == stamp_now_) return true;
    const int index = line_.event_at(v, reader);
    if (index == 0) return false;
    if (index < static_cast<int>(events.size()) && !events[index].is_write) return true;
    if (value.retention == Retention::kUntilStepEnd || value.producer == kNone) return true;
    const int last = events[index - 1].slot;
    const bool fits = line_.most_bytes(last + 1, reader) + charged_bytes(value) <= budget_;
    if (fits ? dice_.share() < 0.95 : dice_.share() < 0.15) return true;
    return may_repeat(graph_, value.producer) ? need(value.producer, reader) : true;
  }

  // Drops idle values at the peak until it is within the budget.
  void repair() {
    for (int i = 0; i < kMaxRepairs && line_.peak_bytes() > budget_; ++i) {
      if (!lower_peak()) return;
    }
  }

  bool lower_peak() {
    const Bytes peak = line_.peak_bytes(), excess = peak - budget_;
    const int slot = line_.peak_slot();
    const auto first = line_.gap_first(), last = line_.gap_last();
    std::array<std::pair<double, int>, kCandidates> best;
    int count = 0;
    for (std::size_t gap = 0; gap < first.size(); ++gap) {
      if (first[gap] >= slot || last[gap] <= slot) continue;
      const Value& value = graph_.values[line_.gap_value(static_cast<int>(gap))];
      const double freed = static_cast<double>(std::min(value.bytes, excess));
      const double noise = 0.25 + dice_.share() * dice_.share() * 4;
      const bool is_new = line_.gap_follows_write(static_cast<int>(gap));
      if (!is_new && !may_repeat(graph_, value.producer)) continue;
      const double price = ((is_new ? 0 : graph_.ops[value.producer].time_us) + 0.01 * mean_us_) / freed * noise;
      if (count == kCandidates && price >= best[count - 1].first) continue;
      int at = count < kCandidates ? count++ : count - 1;
      for (; at > 0 && best[at - 1].first > price; --at) best[at] = best[at - 1];
      best[at] = {price, static_cast<int>(gap)};
    }
    for (int i = 0; i < count; ++i) {
      const int gap = best[i].second;
      for (const auto way : {&Polish::delay, &Polish::advance, &Polish::drop}) {
        const std::size_t mark = log_.size();
        const int reader = line_.gap_last()[gap];
        const Bytes here = line_.most_bytes(slot, slot);
        if ((this->*way)(gap)) {
          const bool lower = line_.most_bytes(slot, slot) < here && line_.peak_bytes() <= peak &&
                             line_.most_bytes(line_.slot_before(reader), reader) < peak;
          if (lower) return true;
        }
        undo(mark);
        if (line_.gap_last()[gap] != reader) break;  // undoing gave the gap another number
      }
    }
    return false;
  }

  // Where an op that now runs at `slot` may run instead, as far as what it reads and who reads it say.
  struct Window {
    int first, last;
  };
  Window window_of(OpId op, int slot) const {
    Window window{line_.boundary_slot() + 1, line_.num_slots() - 1};
    for (ValueId v : graph_.ops[op].inputs) {
      const auto events = line_.events(v);
      if (events.empty()) continue;
      int write = line_.event_at(v, slot) - 1;
      while (write >= 0 && !events[write].is_write) --write;
      if (write >= 0) window.first = std::max(window.first, events[write].slot + 1);
    }
    for (ValueId v : graph_.ops[op].outputs) {
      const auto events = line_.events(v);
      if (events.empty()) continue;
      const std::size_t index = line_.event_at(v, slot) + 1;
      if (index < events.size()) window.last = std::min(window.last, events[index].slot - 1);
    }
    return window;
  }

  bool move(TimeLine::InstanceId id, int target) {
    const OpId op = line_.op_of(id);
    if (graph_.ops[op].is_random || target == line_.slot_of(id) || line_.at(target) != kNone) return false;
    erase(id);
    insert(op, target);
    return true;
  }

  // Computes the value of a gap right before its first read instead of at once.
  bool delay(int gap) {
    if (!line_.gap_follows_write(gap)) return false;
    const int reader = line_.gap_last()[gap], slot = line_.gap_first()[gap];
    if (slot <= line_.boundary_slot()) return false;
    const Window window = window_of(line_.op_of(line_.at(slot)), slot);
    const int before = line_.slot_before(reader);
    if (window.last < reader - 1 || reader - before < 2 || before <= slot) return false;
    return move(line_.at(slot), before + (reader - before) / 2);
  }

  // Runs the op that ends a gap as early as its inputs allow.
  bool advance(int gap) {
    const int slot = line_.gap_last()[gap];
    const TimeLine::InstanceId id = line_.at(slot);
    if (id == kNone) return false;
    const int first = window_of(line_.op_of(id), slot).first;
    if (first >= slot) return false;
    int end = first;
    while (end < slot && line_.at(end) == kNone) ++end;
    return end > first && end < slot && move(id, first + (end - first) / 2);
  }

  // Takes recomputations out for which there is room.
  void fill() {
    if (line_.peak_bytes() > budget_) return;
    for (int i = 0; i < kFillTries && !line_.repeats().empty(); ++i) {
      const auto& repeats = line_.repeats();
      const TimeLine::InstanceId id = repeats[dice_.below(static_cast<int>(repeats.size()))];
      if (!line_.can_erase(id) || !has_room_without(id)) continue;
      const std::size_t mark = log_.size();
      erase(id);
      if (line_.peak_bytes() > budget_) undo(mark);
    }
  }

  bool has_room_without(TimeLine::InstanceId id) const {
    const int slot = line_.slot_of(id);
    for (ValueId v : graph_.ops[line_.op_of(id)].outputs) {
      const auto events = line_.events(v);
      if (events.empty()) continue;
      const std::size_t index = line_.event_at(v, slot);
      if (index + 1 == events.size() || events[index + 1].is_write || index == 0) continue;
      const Bytes bytes = graph_.values[v].retention == Retention::kUntilStepEnd ? 0 : charged_bytes(graph_.values[v]);
      if (line_.most_bytes(events[index - 1].slot + 1, slot - 1) + bytes > budget_) return false;
    }
    return true;
  }

  const TrainingGraph& graph_;
  const PolishOptions& options_;
  TimeLine line_;
  Dice dice_;
  Micros plain_us_ = 0, mean_us_ = 0;
  double penalty_ = 0, temperature_ = 0, best_energy_ = 0;
  bool at_best_ = false;
  int crowded_ = 0;  // chains that found no room since the line was spread
  PolishResult best_;
  std::vector<Edit> log_;
  std::vector<OpId> chain_;
  std::vector<std::int64_t> stamp_;
  std::int64_t stamp_now_ = 0;
  Bytes start_peak_ = 0;
  Bytes budget_ = 0;  // the one worked for now
};

}  // namespace

PolishResult polish(const TrainingGraph& graph, const std::vector<OpId>& sequence, const PolishOptions& options) {
  return Polish(graph, sequence, options).run();
}

}  // namespace rockmate

#include "rockmate/planners/lower_set_program.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "rockmate/solvers/slot_memory.h"

namespace rockmate {
namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();
constexpr std::size_t kManyArcs = 200'000;
constexpr int kFewTimes = 64;  // classes of t where there are many arcs

// The first and the last op of a \ b.
std::pair<OpId, OpId> range_of_difference(const OpSet& a, const OpSet& b) {
  OpId first = kNone, last = kNone;
  for (std::size_t i = 0; i < a.words().size(); ++i) {
    const std::uint64_t word = a.words()[i] & ~b.words()[i];
    if (word == 0) continue;
    const OpId base = static_cast<OpId>(64 * i);
    if (first == kNone) first = base + std::countr_zero(word);
    last = base + 63 - std::countl_zero(word);
  }
  return {first, last};
}

template <typename Visit>
void for_each_op(std::uint64_t word, std::size_t index, Visit visit) {
  for (; word != 0; word &= word - 1) visit(static_cast<OpId>(64 * index + std::countr_zero(word)));
}

}  // namespace

LowerSetProgram::LowerSetProgram(const TrainingGraph& graph, std::vector<OpSet> family, const PlannerContext& context)
    : graph_(graph),
      family_(std::move(family)),
      context_(context),
      num_forward_(num_forward_ops(graph)),
      readers_(readers_of(graph)),
      needed_(graph.num_ops(), false),
      working_(num_forward_, 0),
      arcs_(family_.size()) {
  measure_ops();
  for (std::size_t to = 1; to < family_.size(); ++to) {
    if (!context_.progress("lower sets", 0.2 * static_cast<double>(to) / static_cast<double>(family_.size()))) break;
    connect(static_cast<int>(to));
  }
}

void LowerSetProgram::measure_ops() {
  const auto bytes_of = [&](const std::vector<ValueId>& values, bool gradients_only) {
    Bytes bytes = 0;
    for (ValueId v : values) {
      const OpId producer = graph_.values[v].producer;
      if (gradients_only && producer != kNone && producer < num_forward_) continue;
      bytes += charged_bytes(graph_.values[v]);
    }
    return bytes;
  };
  Bytes all_outputs = 0, most_working = 0;
  OpId home = num_forward_ - 1;
  for (OpId op = graph_.num_ops() - 1; op >= 0; --op) {
    if (op >= num_forward_) needed_[op] = true;
    if (!needed_[op]) continue;
    for (ValueId v : graph_.ops[op].inputs) {
      if (graph_.values[v].producer != kNone) needed_[graph_.values[v].producer] = true;
    }
  }
  for (OpId op = 0; op < num_forward_; ++op) {
    all_outputs += bytes_of(graph_.ops[op].outputs, false);
    working_[op] = graph_.ops[op].workspace_bytes;
    for (ValueId v : graph_.ops[op].outputs) {
      const bool in_backward = !readers_[v].empty() && readers_[v].back() >= num_forward_;
      if (!in_backward) working_[op] += charged_bytes(graph_.values[v]);
    }
  }
  // A backward op belongs to the latest forward op whose value it reads; without any, to that of the op before it.
  for (OpId op = num_forward_; op < graph_.num_ops(); ++op) {
    OpId latest = kNone;
    for (ValueId v : graph_.ops[op].inputs) {
      const OpId producer = graph_.values[v].producer;
      if (producer != kNone && producer < num_forward_) latest = std::max(latest, producer);
    }
    if (latest != kNone) home = latest;
    const Bytes holds =
        bytes_of(graph_.ops[op].inputs, true) + bytes_of(graph_.ops[op].outputs, false) + graph_.ops[op].workspace_bytes;
    if (home >= 0) working_[home] = std::max(working_[home], holds);
  }
  for (Bytes bytes : working_) most_working = std::max(most_working, bytes);
  most_bytes_ = 2 * all_outputs + most_working;
}

std::vector<LowerSetProgram::Share> LowerSetProgram::shares(const OpSet& to) const {
  std::vector<Share> shares(num_forward_, Share{0, 0, 0});
  const bool is_all = to.size() == num_forward_;
  for (OpId op = 0; op < num_forward_; ++op) {
    if (!to.has(op)) continue;
    bool again = false;
    for (ValueId v : graph_.ops[op].outputs) {
      bool is_read_outside = false, inside = false, is_needed = false;
      for (OpId reader : readers_[v]) {
        const bool is_outside = reader < num_forward_ && !to.has(reader);
        is_read_outside |= is_outside;
        inside |= needed_[reader] && !is_outside;
        is_needed |= needed_[reader];
      }
      const bool crosses = is_read_outside && is_needed;
      const bool in_backward = !readers_[v].empty() && readers_[v].back() >= num_forward_;
      const bool stays = !graph_.ops[op].recomputable || graph_.values[v].retention == Retention::kUntilStepEnd;
      const auto bytes = static_cast<float>(charged_bytes(graph_.values[v]));
      if (crosses || stays) shares[op].kept_bytes += bytes;
      if (crosses || stays || in_backward) shares[op].inner_bytes += bytes;
      again |= inside && !crosses && !stays;
    }
    if (again && !is_all) shares[op].recompute_us = static_cast<float>(graph_.ops[op].time_us);
  }
  return shares;
}

LowerSetProgram::Step LowerSetProgram::step(const OpSet& from, const OpSet& to) const {
  const std::vector<Share> shares = this->shares(to);
  Step step;
  Bytes working = 0;
  const auto [first, last] = range_of_difference(to, from);
  for (OpId op = 0; op < num_forward_; ++op) {
    if (!to.has(op) || from.has(op)) continue;
    step.recompute_us += shares[op].recompute_us;
    step.kept_bytes += static_cast<Bytes>(shares[op].kept_bytes);
    step.peak_bytes += static_cast<Bytes>(shares[op].inner_bytes);
  }
  for (OpId op = std::max(first, 0); op <= last; ++op) working = std::max(working, working_[op]);
  step.peak_bytes += working;
  return step;
}

// Arcs from every smaller set; sums are carried from one to the next, which differs by few ops.
void LowerSetProgram::connect(int to) {
  const OpSet& target = family_[to];
  const std::vector<Share> shares = this->shares(target);
  const SlotMemory working(working_);
  const OpSet* current = &target;
  double recompute_us = 0, kept_bytes = 0, inner_bytes = 0;
  for (int from = to - 1; from >= 0; --from) {
    const OpSet& set = family_[from];
    if (!set.within(target)) continue;
    for (std::size_t i = 0; i < set.words().size(); ++i) {
      const auto move = [&](std::uint64_t word, double sign) {
        for_each_op(word, i, [&](OpId op) {
          recompute_us += sign * shares[op].recompute_us;
          kept_bytes += sign * shares[op].kept_bytes;
          inner_bytes += sign * shares[op].inner_bytes;
        });
      };
      move(current->words()[i] & ~set.words()[i], 1);
      move(set.words()[i] & ~current->words()[i], -1);
    }
    current = &set;
    const auto [first, last] = range_of_difference(target, set);
    const auto peak = inner_bytes + static_cast<double>(working.most(first, last));
    arcs_[to].push_back({from, static_cast<float>(recompute_us), static_cast<float>(kept_bytes), static_cast<float>(peak)});
  }
}

std::optional<std::pair<LowerSetProgram::Strategy, LowerSetProgram::Strategy>> LowerSetProgram::solve(Bytes b) const {
  std::size_t num_arcs = 0;
  for (const auto& arcs : arcs_) num_arcs += arcs.size();
  const int times = num_arcs > kManyArcs ? kFewTimes : kTimes;
  Micros total_us = 1e-9;
  for (OpId op = 0; op < num_forward_; ++op) total_us += needed_[op] ? graph_.ops[op].time_us : 0;

  struct State {
    float recompute_us = 0, kept_bytes = kNever;
    int from = kNone, from_class = 0;
  };
  const auto class_of = [&](float t) { return std::min(static_cast<int>(t / total_us * times + 1e-6), times - 1); };
  std::vector<std::vector<State>> opt(family_.size(), std::vector<State>(times));
  std::vector<std::vector<int>> live(family_.size());     // classes of t with a state
  std::vector<float> least_kept(family_.size(), kNever);  // of all classes
  opt[0][0].kept_bytes = least_kept[0] = 0;
  live[0].push_back(0);
  for (std::size_t to = 1; to < family_.size(); ++to) {
    if (context_.expired()) return std::nullopt;
    const bool is_last = to + 1 == family_.size();  // then time counts, before it what is kept
    for (const Arc& arc : arcs_[to]) {
      if (least_kept[arc.from] + arc.peak_bytes > static_cast<float>(b)) continue;
      // From the least memory up, so that the first one that doesn't fit ends it.
      for (auto live_class = live[arc.from].rbegin(); live_class != live[arc.from].rend(); ++live_class) {
        const int c = *live_class;
        const State& before = opt[arc.from][c];
        if (before.kept_bytes + arc.peak_bytes > static_cast<float>(b)) break;
        const float t = before.recompute_us + arc.recompute_us, m = before.kept_bytes + arc.kept_bytes;
        State& state = opt[to][class_of(t)];
        const bool is_less = is_last ? t < state.recompute_us : m < state.kept_bytes;
        const bool is_equal = is_last ? t == state.recompute_us : m == state.kept_bytes;
        const bool is_tie_won = is_last ? m < state.kept_bytes : t < state.recompute_us;
        if (state.from == kNone || is_less || (is_equal && is_tie_won)) state = {t, m, arc.from, c};
      }
    }
    // More time is worth it only for less memory.
    float least = kNever;
    for (int c = 0; c < times; ++c) {
      if (opt[to][c].kept_bytes == kNever || (!is_last && opt[to][c].kept_bytes >= least)) continue;
      least = opt[to][c].kept_bytes;
      live[to].push_back(c);
    }
    least_kept[to] = least;
  }
  if (live.back().empty()) return std::nullopt;
  const auto strategy = [&](int c) {
    std::vector<int> sets;
    const float recompute_us = opt.back()[c].recompute_us;
    for (int set = static_cast<int>(family_.size()) - 1; set > 0;) {
      sets.push_back(set);
      const State& state = opt[set][c];
      set = state.from;
      c = state.from_class;
    }
    std::reverse(sets.begin(), sets.end());
    Strategy result = trace(sets);
    result.recompute_us = recompute_us;
    return result;
  };
  return std::pair{strategy(live.back().front()), strategy(live.back().back())};
}

LowerSetProgram::Strategy LowerSetProgram::trace(const std::vector<int>& sets) const {
  Strategy strategy;
  strategy.segment_of.assign(num_forward_, 0);
  for (OpId op = 0; op < num_forward_; ++op) {
    while (!family_[sets[strategy.segment_of[op]]].has(op)) ++strategy.segment_of[op];
  }
  return strategy;
}

}  // namespace rockmate

#include "rockmate/planners/lower_bound.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>

#include "rockmate/planners/moments.h"
#include "rockmate/planners/moments_program.h"
#include "rockmate/schedule/schedule.h"
#include "rockmate/solvers/min_cut.h"
#include "rockmate/solvers/sequence_memory.h"

namespace rockmate {
namespace {

// Time and bytes of one choice of what to hold and what to run again.
struct Line {
  double time_us = 0, bytes = 0;
};

class Pricer {
 public:
  Pricer(const TrainingGraph& graph, const Moment& moment) : graph_(graph), moment_(moment) {}

  // The cheapest choice at `per_us` x time + `per_byte` x bytes, with `only_free`: among those that take no time.
  // `least` never exceeds its price. False when there is no choice at all.
  bool cheapest(double per_us, double per_byte, bool only_free, Line& line, double& least) const {
    const double scale = scale_for(per_us, per_byte);
    const auto price = [&](double amount) {
      return std::min(static_cast<std::int64_t>(std::floor(amount * scale)), MinCut::kUncut / 2);
    };
    MinCut cut(2 + graph_.num_values() + graph_.num_ops());
    for (ValueId v : moment_.reads) {
      if (moment_.at[v] != Moment::At::kHeld) cut.add_edge(MinCut::kSource, value_node(v), MinCut::kUncut);
    }
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      if (moment_.at[v] == Moment::At::kHeld) continue;
      const bool open = moment_.at[v] == Moment::At::kOpen;
      const double bytes = static_cast<double>(charged_bytes(graph_.values[v]));
      const OpId producer = graph_.values[v].producer;
      if (!open && producer == kNone) continue;  // a tangent that appears later
      const int to = producer == kNone ? MinCut::kSink : op_node(producer);
      cut.add_edge(value_node(v), to, open ? price(per_byte * bytes) : MinCut::kUncut);
    }
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      for (ValueId v : graph_.ops[op].inputs) {
        if (moment_.at[v] != Moment::At::kHeld) cut.add_edge(op_node(op), value_node(v), MinCut::kUncut);
      }
      const Micros time_us = moment_.rerun_us[op];
      const bool never = time_us == kNever || (only_free && time_us > 0);
      const double amount = never ? 0 : per_us * time_us + per_byte * state_bytes(op);
      cut.add_edge(op_node(op), MinCut::kSink, never ? MinCut::kUncut : price(amount));
    }
    const std::int64_t flow = cut.solve();
    if (flow >= MinCut::kUncut) return false;
    least = static_cast<double>(flow) / scale;
    line = {};
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (!cut.in_source_side(op_node(op))) continue;
      line.time_us += moment_.rerun_us[op];
      line.bytes += state_bytes(op);
    }
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      if (moment_.at[v] != Moment::At::kOpen || !cut.in_source_side(value_node(v))) continue;
      const OpId producer = graph_.values[v].producer;
      if (producer == kNone || !cut.in_source_side(op_node(producer)))
        line.bytes += static_cast<double>(charged_bytes(graph_.values[v]));
    }
    return true;
  }

 private:
  static int value_node(ValueId v) { return 2 + v; }
  int op_node(OpId op) const { return 2 + graph_.num_values() + op; }

  // A random op that has run and runs again holds the generator's state in between.
  double state_bytes(OpId op) const {
    const bool again = graph_.ops[op].is_random && moment_.has_run[op];
    return again ? static_cast<double>(graph_.rng_state_bytes) : 0;
  }

  // All prices together stay below 2^50; each is rounded down.
  double scale_for(double per_us, double per_byte) const {
    double sum = 0;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (moment_.rerun_us[op] != kNever) sum += per_us * moment_.rerun_us[op] + per_byte * state_bytes(op);
    }
    for (const Value& value : graph_.values) sum += per_byte * static_cast<double>(charged_bytes(value));
    return sum > 0 ? std::ldexp(1.0, 50) / sum : 1;
  }

  const TrainingGraph& graph_;
  const Moment& moment_;
};

// The header's linear relaxation at one moment.
Micros bound_at(const TrainingGraph& graph, const Moment& moment, Bytes budget_bytes) {
  const double room = static_cast<double>(budget_bytes - moment.fixed_bytes);
  const Pricer pricer(graph, moment);
  Line few_bytes, no_time;
  double least = 0;
  if (!pricer.cheapest(0, 1, false, few_bytes, least)) return kNever;
  if (least > room * (1 + 1e-9) + 1e-6) return kNever;
  const bool possible = pricer.cheapest(0, 1, true, no_time, least);
  if (possible && no_time.bytes <= room) return 0;
  if (few_bytes.bytes > room) return 0;  // within rounding of the least that is certain
  Micros best = 0;
  // Each choice is a line in the price per byte: time + price x (bytes - room). Their lower envelope is concave. A line that
  // rises and one that falls cross at a price; when no choice is cheaper there, the envelope's top is found, else that choice
  // replaces one of the two.
  if (!possible) no_time = {0, static_cast<double>(std::numeric_limits<Bytes>::max())};
  for (int round = 0; round < 30; ++round) {
    const double gain = no_time.bytes - few_bytes.bytes;
    const double price = (few_bytes.time_us - no_time.time_us) / gain;
    if (!(gain > 0) || !(price > 0)) break;
    Line line;
    if (!pricer.cheapest(1, price, false, line, least)) return kNever;
    best = std::max(best, least - price * room);
    const double crossing = few_bytes.time_us + price * (few_bytes.bytes - room);
    const double found = line.time_us + price * (line.bytes - room);
    if (found >= crossing - 1e-9 * (std::abs(crossing) + 1)) break;
    (line.bytes > room ? no_time : few_bytes) = line;
  }
  return best * (1 - 1e-9);
}

// The moments that hold the most without recomputation, the boundary first.
std::vector<OpId> moments_to_try(const TrainingGraph& graph) {
  const std::size_t count = graph.num_ops() < 300 ? 40 : graph.num_ops() < 4000 ? 10 : 3;
  const SequenceMemory plain(graph, store_all_sequence(graph));
  std::vector<OpId> ops(graph.num_ops());
  std::iota(ops.begin(), ops.end(), 0);
  std::stable_sort(ops.begin(), ops.end(), [&](OpId a, OpId b) { return plain.inside()[a] > plain.inside()[b]; });
  std::vector<OpId> moments;
  const OpId num_forward = num_forward_ops(graph);
  if (num_forward > 0 && num_forward < graph.num_ops()) moments.push_back(kBoundary);
  for (OpId op : ops) {
    if (moments.size() >= count) break;
    moments.push_back(op);
  }
  return moments;
}

struct MomentBound {
  Micros bound_us = 0;
  OpId where = kNone;
};

// The highest bound of a single moment.
MomentBound best_moment(const TrainingGraph& graph, Bytes budget_bytes) {
  if (working_set_floor(graph) > budget_bytes) return {kNever, kNone};
  const MomentMaker maker(graph);
  MomentBound best;
  for (OpId d : moments_to_try(graph)) {
    const Micros bound_us = bound_at(graph, maker.make(d), budget_bytes);
    if (bound_us > best.bound_us) best = {bound_us, d};
    if (bound_us == kNever) break;
  }
  return best;
}

Micros compute_bound(const TrainingGraph& graph, Bytes budget_bytes) {
  const MomentBound best = best_moment(graph, budget_bytes);
  if (best.where == kNone || best.bound_us == kNever) return best.bound_us;
  return std::max(best.bound_us, bound_of_moments(graph, budget_bytes, moments_around(graph, best.where)));
}

// Equal for graphs that have the same bound at every budget.
std::vector<std::int64_t> numbers_of(const TrainingGraph& graph) {
  std::vector<std::int64_t> numbers{graph.has_boundary, graph.rng_state_bytes};
  for (const Value& value : graph.values) {
    numbers.insert(numbers.end(), {value.bytes, static_cast<std::int64_t>(value.kind),
                                   static_cast<std::int64_t>(value.retention), value.producer});
  }
  for (const Op& op : graph.ops) {
    numbers.insert(numbers.end(),
                   {std::bit_cast<std::int64_t>(op.time_us), op.workspace_bytes, static_cast<std::int64_t>(op.pass),
                    op.is_random, op.recomputable, static_cast<std::int64_t>(op.inputs.size())});
    numbers.insert(numbers.end(), op.inputs.begin(), op.inputs.end());
  }
  return numbers;
}

// The bounds of the last graph: a comparison asks for the same ones once for each planner.
class KnownBounds {
 public:
  Micros find_or_compute(const TrainingGraph& graph, Bytes budget_bytes) {
    const std::lock_guard lock(mutex_);
    std::vector<std::int64_t> numbers = numbers_of(graph);
    if (numbers != graph_) {
      bounds_.clear();
      graph_ = std::move(numbers);
    }
    const auto known = bounds_.find(budget_bytes);
    if (known != bounds_.end()) return known->second;
    return bounds_[budget_bytes] = compute_bound(graph, budget_bytes);
  }

 private:
  std::mutex mutex_;
  std::vector<std::int64_t> graph_;
  std::map<Bytes, Micros> bounds_;
};

}  // namespace

Bytes working_set_floor(const TrainingGraph& graph) {
  Bytes floor = 0;
  for (const Op& op : graph.ops) {
    Bytes bytes = op.workspace_bytes;
    for (ValueId v : op.inputs) bytes += charged_bytes(graph.values[v]);
    for (ValueId v : op.outputs) bytes += charged_bytes(graph.values[v]);
    floor = std::max(floor, bytes);
  }
  return floor;
}

Bytes peak_floor(const TrainingGraph& graph) {
  Bytes floor = working_set_floor(graph);
  const MomentMaker maker(graph);
  for (OpId d : moments_to_try(graph)) {
    const Moment moment = maker.make(d);
    Line few_bytes;
    double least = 0;
    if (!Pricer(graph, moment).cheapest(0, 1, false, few_bytes, least)) continue;
    constexpr double kRounding = 0.01;  // bytes; the cut is a whole number of them, and `least` never above it
    floor = std::max(floor, moment.fixed_bytes + static_cast<Bytes>(std::ceil(least - kRounding)));
  }
  return floor;
}

Micros quick_lower_bound_us(const TrainingGraph& graph, Bytes budget_bytes) {
  return best_moment(graph, budget_bytes).bound_us;
}

Micros lower_bound_us(const TrainingGraph& graph, Bytes budget_bytes) {
  static KnownBounds known;
  return known.find_or_compute(graph, budget_bytes);
}

}  // namespace rockmate

#include "rockmate/planners/dtr.h"

#include <algorithm>
#include <limits>

#include "rockmate/planners/evicted_classes.h"
#include "rockmate/planners/trials.h"

namespace rockmate {
namespace {

constexpr double kHopeless = 10;
constexpr double kShortest = 1e-3;                              // staleness of what was used just now, in microseconds
constexpr double kAbove[] = {1.0, 1.03, 1.01, 1.06, 1.1, 1.2};  // runtime budgets over the real one
constexpr OpId kManyOps = 4000;                                 // above, only the first two of them
constexpr std::size_t kSample = 1000;                           // tensors that an eviction looks at
constexpr int kCorrections = 4;                                 // of a runtime budget whose plan exceeds the real one
constexpr int kBisections = 6;                                  // towards the least budget, where the real one has no plan

class Runtime {
 public:
  Runtime(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context)
      : graph_(graph),
        budget_bytes_(budget_bytes),
        context_(context),
        num_forward_(num_forward_ops(graph)),
        readers_(readers_of(graph)),
        state_(graph.num_values()),
        repeatable_(graph.num_ops()),
        classes_(graph.num_values()) {
    for (const Op& op : graph.ops) plain_us_ += op.time_us;
    for (OpId op = 0; op < graph.num_ops(); ++op) repeatable_[op] = may_repeat(graph, op);
    for (ValueId v = 0; v < graph.num_values(); ++v) {
      state_[v].calls_left = static_cast<int>(readers_[v].size());
      const auto& r = readers_[v];
      state_[v].forward_calls_left = static_cast<int>(std::lower_bound(r.begin(), r.end(), num_forward_) - r.begin());
      state_[v].is_alive = is_resident(graph.values[v].kind);
    }
  }

  std::vector<OpId> run() {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.has_boundary && op == num_forward_ && !cross_boundary()) return {};
      if (!call(op)) return {};
    }
    return std::move(sequence_);
  }

 private:
  struct Tensor {
    bool is_alive = false;
    int place = kNone;  // in the pool
    bool was_computed = false;
    int locks = 0;
    int calls_left = 0;          // ops of the stream that will read it
    int forward_calls_left = 0;  // of them forward ops
    double last_used_us = 0;
  };

  Bytes bytes_of(ValueId v) const { return charged_bytes(graph_.values[v]); }

  bool is_made(ValueId v) const { return graph_.values[v].producer != kNone; }

  // Of the pool.
  bool is_evictable(ValueId v) const {
    const Tensor& tensor = state_[v];
    if (tensor.locks > 0 || bytes_of(v) == 0) return false;
    if (!repeatable_[graph_.values[v].producer] || tensor.forward_calls_left > 0) return false;
    return may_go(v);
  }

  bool may_go(ValueId v) const {
    const Retention retention = graph_.values[v].retention;
    return retention == Retention::kUntilLastUse || (retention == Retention::kUntilForwardEnd && in_backward_);
  }

  // An op of the stream: its inputs are brought back, it runs, and what nobody will read any more goes.
  bool call(OpId id) {
    if (!compute(id)) return false;
    for (ValueId v : graph_.ops[id].inputs) {
      --state_[v].calls_left;
      if (id < num_forward_) --state_[v].forward_calls_left;
      release(v);
    }
    for (ValueId v : graph_.ops[id].outputs) release(v);
    return true;
  }

  bool cross_boundary() {
    in_backward_ = true;
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      if (is_made(v) && graph_.values[v].retention == Retention::kUntilForwardEnd) release(v);
    }
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      if (graph_.values[v].kind != ValueKind::kTangent) continue;
      state_[v].is_alive = true;
      held_bytes_ += bytes_of(v);
      release(v);
    }
    return make_room(0);
  }

  bool compute(OpId id) {
    const Op& op = graph_.ops[id];
    if (context_.expired() || clock_us_ > kHopeless * plain_us_) return false;
    for (ValueId v : op.inputs) {
      if (!state_[v].is_alive && !rematerialise(v)) return false;
      ++state_[v].locks;
    }
    Bytes need = op.workspace_bytes;
    for (ValueId v : op.outputs) need += bytes_of(v);
    if (!make_room(need)) return false;
    sequence_.push_back(id);
    clock_us_ += op.time_us;
    for (ValueId v : op.outputs) {
      appear(v);
      state_[v].last_used_us = clock_us_;
    }
    for (ValueId v : op.inputs) {
      --state_[v].locks;
      state_[v].last_used_us = clock_us_;
    }
    return true;
  }

  bool rematerialise(ValueId v) {
    const OpId producer = graph_.values[v].producer;
    return producer != kNone && repeatable_[producer] && (in_backward_ || !graph_.has_boundary) && compute(producer);
  }

  void appear(ValueId v) {
    Tensor& tensor = state_[v];
    if (tensor.is_alive) return;
    if (tensor.was_computed) {
      classes_.add_cost(v, -graph_.ops[graph_.values[v].producer].time_us);
      classes_.leave(v);
    }
    tensor.is_alive = tensor.was_computed = true;
    held_bytes_ += bytes_of(v);
    tensor.place = static_cast<int>(pool_.size());
    pool_.push_back(v);
  }

  void evict(ValueId v) {
    disappear(v);
    classes_.add_cost(v, graph_.ops[graph_.values[v].producer].time_us);
    for_each_neighbour(v, [&](ValueId other) {
      if (is_evicted(other)) classes_.join(other, v);
    });
  }

  void disappear(ValueId v) {
    Tensor& tensor = state_[v];
    tensor.is_alive = false;
    held_bytes_ -= bytes_of(v);
    if (!is_made(v)) return;
    state_[pool_.back()].place = tensor.place;
    pool_[tensor.place] = pool_.back();
    pool_.pop_back();
  }

  bool is_evicted(ValueId v) const { return !state_[v].is_alive && state_[v].was_computed; }

  template <typename Visit>
  void for_each_neighbour(ValueId v, Visit visit) const {
    for (ValueId parent : graph_.ops[graph_.values[v].producer].inputs) {
      if (is_made(parent)) visit(parent);
    }
    for (OpId reader : readers_[v]) {
      for (ValueId child : graph_.ops[reader].outputs) visit(child);
    }
  }

  // After its last call: eager eviction, or banishing of what can't be made again.
  void release(ValueId v) {
    const Tensor& tensor = state_[v];
    if (tensor.calls_left > 0 || !tensor.is_alive || tensor.locks > 0 || is_resident(graph_.values[v].kind) || !may_go(v))
      return;
    if (is_made(v) && repeatable_[graph_.values[v].producer]) return evict(v);
    for (OpId reader : readers_[v]) {
      if (!repeatable_[reader]) continue;
      const auto& children = graph_.ops[reader].outputs;
      if (std::any_of(children.begin(), children.end(), [&](ValueId child) { return is_evicted(child); })) return;
    }
    for (OpId reader : readers_[v]) repeatable_[reader] = false;
    disappear(v);
  }

  bool make_room(Bytes need) {
    while (held_bytes_ + need > budget_bytes_) {
      const std::size_t stride = pool_.size() / kSample + 1;
      ValueId victim = least_of_pool(++num_evicted_ % stride, stride);
      if (victim == kNone && stride > 1) victim = least_of_pool(0, 1);
      if (victim == kNone) return false;
      evict(victim);
    }
    return true;
  }

  ValueId least_of_pool(std::size_t first, std::size_t stride) {
    ValueId victim = kNone;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = first; i < pool_.size(); i += stride) {
      const ValueId v = pool_[i];
      if (!is_evictable(v)) continue;
      const double h = state_[v].calls_left == 0 ? -1 : heuristic(v);
      if (h < least || (h == least && v < victim)) {
        least = h;
        victim = v;
      }
    }
    return victim;
  }

  double heuristic(ValueId v) {
    neighbourhood_.clear();
    Micros cost_us = graph_.ops[graph_.values[v].producer].time_us;
    for_each_neighbour(v, [&](ValueId other) {
      if (!is_evicted(other)) return;
      const int root = classes_.find(other);
      if (std::find(neighbourhood_.begin(), neighbourhood_.end(), root) != neighbourhood_.end()) return;
      neighbourhood_.push_back(root);
      cost_us += classes_.cost(root);
    });
    const double staleness_us = std::max(clock_us_ - state_[v].last_used_us, kShortest);
    return cost_us / (static_cast<double>(bytes_of(v)) * staleness_us);
  }

  const TrainingGraph& graph_;
  Bytes budget_bytes_;
  const PlannerContext& context_;
  OpId num_forward_;
  std::vector<std::vector<OpId>> readers_;
  std::vector<Tensor> state_;
  std::vector<char> repeatable_;  // by op: can (still) run again
  EvictedClasses classes_;
  std::vector<ValueId> pool_;  // alive, made by an op
  std::vector<int> neighbourhood_;
  std::vector<OpId> sequence_;
  Bytes held_bytes_ = 0;
  std::size_t num_evicted_ = 0;
  Micros clock_us_ = 0, plain_us_ = 0;
  bool in_backward_ = false;
};

}  // namespace

std::vector<OpId> dtr_run(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  return Runtime(graph, budget_bytes, context).run();
}

PlannerAnswer dtr(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  Trials trials(graph, budget_bytes);
  const Bytes plain_bytes = trials.add(store_all_sequence(graph)).peak_bytes;
  if (trials.found()) return std::move(trials).answer();
  const auto attempt = [&](Bytes runtime_bytes) {
    const std::vector<OpId> sequence = dtr_run(graph, runtime_bytes, context);
    return sequence.empty() ? Bytes{0} : trials.add(sequence).peak_bytes;
  };
  const int count = graph.num_ops() > kManyOps ? 2 : static_cast<int>(std::size(kAbove));
  for (int i = 0; i < count && context.progress("stream", static_cast<double>(i) / count); ++i) {
    auto runtime_bytes = static_cast<Bytes>(static_cast<double>(budget_bytes) * kAbove[i]);
    Bytes peak = attempt(runtime_bytes);
    // What the runtime can't know when it runs an op: the generator states of those that it will run again.
    for (int j = 0; i == 0 && j < kCorrections && peak > budget_bytes; ++j) {
      runtime_bytes -= peak - budget_bytes;
      peak = attempt(runtime_bytes);
    }
  }
  if (!trials.found()) {
    Bytes low = budget_bytes, high = plain_bytes;
    for (int i = 0; i < kBisections && context.progress("least budget", static_cast<double>(i) / kBisections); ++i) {
      const Bytes middle = (low + high) / 2;
      (attempt(middle) > 0 ? high : low) = middle;
    }
  }
  return std::move(trials).answer();
}

}  // namespace rockmate

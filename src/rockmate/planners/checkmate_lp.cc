#include "rockmate/planners/checkmate_lp.h"

#include <algorithm>
#include <functional>
#include <random>

#include "rockmate/planners/program_solve.h"
#include "rockmate/planners/stage_program.h"
#include "rockmate/solvers/sequence_memory.h"

namespace rockmate {
namespace {

constexpr int kRandomRoundings = 20;

// Phase two: the sequence with the fewest runs for what is held at the beginning of each stage.
class Completion {
 public:
  explicit Completion(const TrainingGraph& graph) : graph_(graph), num_forward_(num_forward_ops(graph)) {}

  std::vector<OpId> complete(const std::function<bool(OpId, ValueId)>& wants_kept) const {
    std::vector<OpId> sequence;
    std::vector<char> held(graph_.num_values(), 0);
    for (OpId t = 0; t < graph_.num_ops(); ++t) {
      // What stage t must make: t itself, and what the next stage holds and this one does not.
      std::vector<char> run(graph_.num_ops(), 0);
      run[t] = 1;
      for (OpId op = t; op >= 0; --op) {
        if (!run[op]) continue;
        for (ValueId v : graph_.ops[op].inputs) {
          const OpId producer = graph_.values[v].producer;
          if (producer != kNone && !held[v]) run[producer] = 1;
        }
      }
      for (OpId op = 0; op <= t; ++op) {
        if (!run[op]) continue;
        sequence.push_back(op);
        for (ValueId v : graph_.ops[op].outputs) held[v] = 1;
      }
      for (ValueId v = 0; v < graph_.num_values(); ++v) {
        if (held[v] && t + 1 < graph_.num_ops()) held[v] = must_keep(t + 1, v) || wants_kept(t + 1, v);
      }
    }
    return sequence;
  }

 private:
  // What can't be made again in stage t.
  bool must_keep(OpId t, ValueId v) const {
    const Value& value = graph_.values[v];
    return value.retention == Retention::kUntilStepEnd || charged_bytes(value) == 0 || t < num_forward_ ||
           !may_repeat(graph_, value.producer);
  }

  const TrainingGraph& graph_;
  OpId num_forward_;
};

class TwoPhases {
 public:
  TwoPhases(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context)
      : graph_(graph), budget_bytes_(budget_bytes), context_(context), completion_(graph) {}

  PlannerAnswer answer() {
    for (double epsilon : {0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4}) {
      if (context_.expired() || (!best_.sequence.empty() && epsilon > 0.1)) break;
      const auto deflated = static_cast<Bytes>(static_cast<double>(budget_bytes_) * (1 - epsilon));
      StageProgramOptions options;
      options.most_nonzeros =
          std::min(options.most_nonzeros, static_cast<std::int64_t>(kNonzerosPerSecond * context_.seconds_left()));
      const StageProgram program(graph_, deflated, options);
      if (program.too_large()) {
        best_.note = "checkmate's program is too large for this graph in this time: use rockmate or hiremate";
        break;
      }
      if (program.infeasible()) break;
      ilp::SolveOptions how;
      how.relax = true;
      how.time_limit_s = context_.seconds_left();
      const ilp::Outcome outcome = solve_within(context_, "relaxation", program.model(), how);
      if (outcome.status != ilp::Status::kOptimal) break;  // and no smaller budget has a solution either
      round(program, outcome.values);
    }
    return best_;
  }

 private:
  void round(const StageProgram& program, const std::vector<double>& values) {
    for (double threshold : {0.5, 0.3, 0.7, 0.1, 0.9, 1e-6, 1 - 1e-6}) {
      take([&](OpId t, ValueId v) { return program.kept(values, t, v) > threshold; });
    }
    std::mt19937 random(1);
    for (int i = 0; i < kRandomRoundings && !context_.expired(); ++i) {
      take([&](OpId t, ValueId v) { return program.kept(values, t, v) * 4294967296.0 > static_cast<double>(random()); });
    }
  }

  void take(const std::function<bool(OpId, ValueId)>& wants_kept) {
    const std::vector<OpId> sequence = without_dead_recomputations(graph_, completion_.complete(wants_kept));
    const Bytes peak_bytes = SequenceMemory(graph_, sequence).peak_bytes();
    const Micros time_us = sequence_time_us(graph_, sequence);
    if (best_.least_peak_bytes == 0 || peak_bytes < best_.least_peak_bytes) best_.least_peak_bytes = peak_bytes;
    if (peak_bytes > budget_bytes_ || (!best_.sequence.empty() && time_us >= best_us_)) return;
    best_.sequence = sequence;
    best_us_ = time_us;
  }

  const TrainingGraph& graph_;
  Bytes budget_bytes_;
  const PlannerContext& context_;
  Completion completion_;
  PlannerAnswer best_;
  Micros best_us_ = 0;
};

}  // namespace

PlannerAnswer checkmate_lp(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  return TwoPhases(graph, budget_bytes, context).answer();
}

}  // namespace rockmate

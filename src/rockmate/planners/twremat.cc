#include "rockmate/planners/twremat.h"

#include <algorithm>
#include <cassert>
#include <map>

#include "rockmate/planners/tree_decomposition.h"
#include "rockmate/schedule/verifier.h"
#include "rockmate/solvers/keep.h"
#include "rockmate/solvers/sequence_memory.h"

namespace rockmate {
namespace {

// One schedule of the recursion, stopped at a depth.
class Recursion {
 public:
  Recursion(const TrainingGraph& graph, const TreeDecomposition& decomposition, const SeparatorTree& tree, int most_depth,
            std::size_t most_runs, const PlannerContext& context)
      : graph_(graph),
        decomposition_(decomposition),
        tree_(tree),
        most_depth_(most_depth),
        most_runs_(most_runs),
        context_(context),
        held_(graph.num_ops(), 0),
        seen_(graph.num_ops(), 0),
        is_target_(graph.num_ops(), 0) {}

  // Empty when it takes too many runs or too long.
  std::vector<OpId> sequence() {
    for (OpId op = 0; op < num_forward_ops(graph_); ++op) emit(op);
    const auto readers = readers_of(graph_);
    std::vector<OpId> targets;
    for (OpId op = num_forward_ops(graph_); op < graph_.num_ops(); ++op) {
      const auto is_read = [&](ValueId v) { return !readers[v].empty(); };
      const auto& outputs = graph_.ops[op].outputs;
      if (std::none_of(outputs.begin(), outputs.end(), is_read)) targets.push_back(op);
    }
    if (graph_.num_ops() > 0) {
      const OpId top = static_cast<OpId>(std::find(tree_.parent.begin(), tree_.parent.end(), kNone) - tree_.parent.begin());
      make(top, needed_for(targets), targets);
    }
    return failed_ ? std::vector<OpId>() : sequence_;
  }

 private:
  void emit(OpId op) {
    sequence_.push_back(op);
    if (!may_repeat(graph_, op)) held_[op] = 1;
    failed_ |= sequence_.size() > most_runs_ || (sequence_.size() % 256 == 0 && context_.expired());
  }

  void let_go(OpId op) { held_[op] = may_repeat(graph_, op) ? 0 : held_[op]; }

  // Ops not held that must run before and for the targets, these included, ascending.
  std::vector<OpId> needed_for(const std::vector<OpId>& targets) {
    std::vector<OpId> needed;
    const auto add = [&](OpId op) {
      if (held_[op] || seen_[op]) return;
      seen_[op] = 1;
      needed.push_back(op);
    };
    for (OpId op : targets) add(op);
    for (std::size_t i = 0; i < needed.size(); ++i) {
      for (ValueId v : graph_.ops[needed[i]].inputs) {
        if (graph_.values[v].producer != kNone) add(graph_.values[v].producer);
      }
    }
    for (OpId op : needed) seen_[op] = 0;
    std::sort(needed.begin(), needed.end());
    return needed;
  }

  // Makes the targets, which are among the needed ops of separator's part, and holds them.
  void make(OpId separator, const std::vector<OpId>& needed, const std::vector<OpId>& targets) {
    if (failed_) return;
    if (tree_.depth[separator] >= most_depth_ || needed.size() <= targets.size()) {
      for (OpId op : needed) {
        if (!held_[op]) emit(op);
      }
      for (OpId op : targets) held_[op] = 1;
      return;
    }
    std::vector<OpId> stops = targets;  // S and the targets
    for (OpId op : decomposition_.bags[separator]) {
      if (std::binary_search(needed.begin(), needed.end(), op)) stops.push_back(op);
    }
    std::sort(stops.begin(), stops.end());
    stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
    for (OpId p : stops) {
      if (failed_) return;
      if (!held_[p]) make_one(separator, p);
    }
    for (OpId op : targets) is_target_[op] = 1;
    for (OpId p : stops) {
      if (!is_target_[p]) let_go(p);
    }
    for (OpId op : targets) is_target_[op] = 0;
  }

  // Makes in each part what p reads, runs p and holds it alone.
  void make_one(OpId separator, OpId p) {
    struct Part {
      std::vector<OpId> needed, targets;
    };
    std::map<OpId, Part> parts;
    std::vector<OpId> read;
    for (ValueId v : graph_.ops[p].inputs) {
      const OpId producer = graph_.values[v].producer;
      if (producer != kNone && !held_[producer]) read.push_back(producer);
    }
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    for (OpId op : needed_for(read)) parts[tree_.part_of(op, separator)].needed.push_back(op);
    for (OpId op : read) parts[tree_.part_of(op, separator)].targets.push_back(op);
    assert(parts.count(kNone) == 0);  // what p reads outside of the separator's part is held
    for (const auto& [below, part] : parts) make(below, part.needed, part.targets);
    emit(p);
    for (OpId op : read) let_go(op);
    held_[p] = 1;
  }

  const TrainingGraph& graph_;
  const TreeDecomposition& decomposition_;
  const SeparatorTree& tree_;
  int most_depth_;
  std::size_t most_runs_;
  const PlannerContext& context_;
  std::vector<char> held_, seen_, is_target_;
  std::vector<OpId> sequence_;
  bool failed_ = false;
};

}  // namespace

PlannerAnswer twremat(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  PlannerAnswer answer;
  const TreeDecomposition decomposition = min_degree_decomposition(graph);
  const SeparatorTree tree = divide(decomposition);
  const int deepest = tree.depth.empty() ? 0 : *std::max_element(tree.depth.begin(), tree.depth.end());
  const std::size_t most_runs = std::min<std::size_t>(std::size_t{100} * graph.num_ops() + 1000, 2'000'000);
  Micros best_us = 0;
  for (int depth = 0; depth <= deepest + 1 && context.progress("tree", depth / (deepest + 2.0)); ++depth) {
    std::vector<OpId> sequence = Recursion(graph, decomposition, tree, depth, most_runs, context).sequence();
    if (sequence.empty()) break;
    sequence = without_dead_recomputations(graph, sequence);
    const Bytes peak_bytes = SequenceMemory(graph, sequence).peak_bytes();
    if (answer.least_peak_bytes == 0 || peak_bytes < answer.least_peak_bytes) answer.least_peak_bytes = peak_bytes;
    if (peak_bytes > budget_bytes || verify(graph, schedule_from_sequence(graph, sequence))) continue;
    sequence = keep_within(graph, std::move(sequence), budget_bytes);
    const Micros time_us = sequence_time_us(graph, sequence);
    if (!answer.sequence.empty() && time_us >= best_us) continue;
    answer.sequence = std::move(sequence);
    best_us = time_us;
  }
  answer.note = "tree decomposition of width " + std::to_string(decomposition.width());
  return answer;
}

}  // namespace rockmate

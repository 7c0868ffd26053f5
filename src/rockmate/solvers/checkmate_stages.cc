#include "rockmate/solvers/checkmate_stages.h"

#include <algorithm>

namespace rockmate {
namespace {

// Gradients alive before each backward op, and everything but forward values while it runs.
struct GradientBytes {
  std::vector<Bytes> before, inside;

  GradientBytes(const TrainingGraph& graph, OpId num_forward) : before(graph.num_ops() + 1, 0), inside(graph.num_ops(), 0) {
    const auto readers = readers_of(graph);
    std::vector<Bytes> change(graph.num_ops() + 1, 0);  // alive during op o: sum of changes up to o
    for (ValueId v = 0; v < graph.num_values(); ++v) {
      const Value& value = graph.values[v];
      const bool is_forward = value.producer != kNone && value.producer < num_forward;
      if (is_forward || charged_bytes(value) == 0) continue;
      const OpId begin = value.producer == kNone ? num_forward : value.producer;
      const OpId read = readers[v].empty() ? begin : readers[v].back();
      const OpId last = value.retention == Retention::kUntilStepEnd ? graph.num_ops() - 1 : std::max(read, begin);
      if (begin >= graph.num_ops()) continue;
      change[begin] += value.bytes;
      change[last + 1] -= value.bytes;
    }
    Bytes alive = 0;
    for (OpId op = num_forward; op < graph.num_ops(); ++op) {
      alive += change[op];
      inside[op] = alive + graph.ops[op].workspace_bytes;
      before[op] = alive;
      for (ValueId v : graph.ops[op].outputs) before[op] -= charged_bytes(graph.values[v]);
    }
  }
};

void choose_managed(const TrainingGraph& graph, OpId num_forward, Bytes negligible_share, CheckmateStages& result) {
  std::vector<bool> matters(graph.num_values(), false);  // read by the backward pass, or needed to make such a value
  for (OpId op = graph.num_ops() - 1; op >= 0; --op) {
    const auto& outputs = graph.ops[op].outputs;
    const bool needed = op >= num_forward || std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) { return matters[v]; });
    if (!needed) continue;
    for (ValueId v : graph.ops[op].inputs) matters[v] = true;
  }
  Bytes total = 0;
  for (OpId op = 0; op < num_forward; ++op) {
    for (ValueId v : graph.ops[op].outputs) total += charged_bytes(graph.values[v]);
  }
  result.managed.assign(graph.num_values(), false);
  for (OpId op = 0; op < num_forward; ++op) {
    for (ValueId v : graph.ops[op].outputs) {
      const Bytes bytes = charged_bytes(graph.values[v]);
      if (!matters[v] || bytes == 0) continue;
      if ((negligible_share > 0 && bytes < total / negligible_share) || !graph.ops[op].recomputable) {
        result.kept_bytes += bytes;
        result.exact = result.exact && !graph.ops[op].recomputable;
      } else {
        result.managed[v] = true;
      }
    }
  }
}

}  // namespace

int CheckmateStages::num_recomputations(const TrainingGraph& graph) const {
  int count = 0;
  for (const Op& op : graph.ops) {
    int last = 0;
    for (ValueId v : op.outputs) last = std::max(last, managed[v] ? last_needed[v] : 0);
    count += last;
  }
  return count;
}

CheckmateStages checkmate_stages(const BlockProblem& problem, Bytes negligible_share) {
  const TrainingGraph& graph = problem.graph;
  const OpId num_forward = num_forward_ops(graph);
  CheckmateStages result;
  choose_managed(graph, num_forward, negligible_share, result);
  const GradientBytes gradients(graph, num_forward);

  result.stages.push_back({.first = num_forward, .end = num_forward, .reads = {}});
  for (OpId op = num_forward; op < graph.num_ops(); ++op) {
    std::vector<ValueId> reads;
    for (ValueId v : graph.ops[op].inputs) {
      if (result.managed[v]) reads.push_back(v);
    }
    CheckmateStage& stage = result.stages.back();
    if (reads.empty()) {
      stage.end = op + 1;
      stage.rest_bytes = std::max(stage.rest_bytes, gradients.inside[op]);
    } else {
      result.stages.push_back({op, op + 1, std::move(reads), gradients.before[op], gradients.inside[op], 0});
    }
  }

  result.last_needed.assign(graph.num_values(), -1);
  for (int j = 0; j < static_cast<int>(result.stages.size()); ++j) {
    for (ValueId v : result.stages[j].reads) result.last_needed[v] = j;
  }
  for (OpId op = num_forward - 1; op >= 0; --op) {
    int last = -1;
    for (ValueId v : graph.ops[op].outputs) {
      if (result.managed[v]) last = std::max(last, result.last_needed[v]);
    }
    for (ValueId v : graph.ops[op].inputs) {
      if (result.managed[v]) result.last_needed[v] = std::max(result.last_needed[v], last);
    }
  }
  return result;
}

}  // namespace rockmate

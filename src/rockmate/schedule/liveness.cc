// From an order of computes to a schedule: where each value dies. One backward scan, linear in the sequence.
#include <stdexcept>
#include <string>

#include "rockmate/schedule/schedule.h"

namespace rockmate {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::invalid_argument("[schedule] " + what + ": check the sequence against the graph it was made for");
}

void check_sequence(const TrainingGraph& graph, const std::vector<OpId>& sequence) {
  const std::size_t forward = num_forward_ops(graph);
  if (sequence.size() < forward) {
    fail("the sequence has " + std::to_string(sequence.size()) + " computes, but the forward pass alone has " +
         std::to_string(forward));
  }
  std::vector<char> written(graph.values.size(), 0);
  for (std::size_t at = 0; at < sequence.size(); ++at) {
    const OpId id = sequence[at];
    if (id < 0 || id >= graph.num_ops())
      fail("position " + std::to_string(at) + " computes op " + std::to_string(id) + ", which is not there");
    if (at < forward && id != static_cast<OpId>(at)) {
      fail("position " + std::to_string(at) + " of the forward pass computes '" + graph.ops[id].name + "' out of graph order");
    }
    for (ValueId input : graph.ops[id].inputs) {
      const Value& value = graph.values[input];
      const bool there = is_resident(value.kind) || written[input] || (value.kind == ValueKind::kTangent && at >= forward);
      if (!there)
        fail("position " + std::to_string(at) + ", '" + graph.ops[id].name + "': input '" + value.name + "' can't be alive");
    }
    for (ValueId output : graph.ops[id].outputs) written[output] = 1;
  }
}

}  // namespace

Schedule schedule_from_sequence(const TrainingGraph& graph, const std::vector<OpId>& sequence) {
  check_sequence(graph, sequence);
  const std::size_t forward = num_forward_ops(graph);

  // dies[at]: what is freed right after position `at`. read_later: the instance at hand is read after the scan's position.
  std::vector<std::vector<ValueId>> dies(sequence.size());
  std::vector<ValueId> dies_with_forward, dies_with_start_of_backward;
  std::vector<char> read_later(graph.values.size(), 0);
  const auto last_use = [&](ValueId id, std::size_t at) {
    const Value& value = graph.values[id];
    if (is_resident(value.kind) || value.retention == Retention::kUntilStepEnd) return;
    const bool waits = value.retention == Retention::kUntilForwardEnd && at < forward;
    (waits ? dies_with_forward : dies[at]).push_back(id);
  };
  for (std::size_t at = sequence.size(); at-- > 0;) {
    const Op& op = graph.ops[sequence[at]];
    for (ValueId output : op.outputs) {
      if (!read_later[output]) last_use(output, at);
      read_later[output] = 0;
    }
    for (ValueId input : op.inputs) {
      if (!read_later[input]) last_use(input, at);
      read_later[input] = 1;
    }
  }
  if (sequence.size() > forward) {
    for (ValueId id = 0; id < graph.num_values(); ++id) {
      const Value& value = graph.values[id];
      const bool unused = value.kind == ValueKind::kTangent && !read_later[id];
      if (unused && value.retention != Retention::kUntilStepEnd) dies_with_start_of_backward.push_back(id);
    }
  }

  Schedule schedule;
  const auto free_all = [&](const std::vector<ValueId>& values) {
    for (ValueId id : values) schedule.actions.push_back(Action::free(id));
  };
  for (std::size_t at = 0; at <= sequence.size(); ++at) {
    if (at == forward) {
      free_all(dies_with_forward);
      schedule.forward_end = schedule.actions.size();
      free_all(dies_with_start_of_backward);
    }
    if (at == sequence.size()) break;
    schedule.actions.push_back(Action::compute(sequence[at]));
    free_all(dies[at]);
  }
  return schedule;
}

std::vector<OpId> without_dead_recomputations(const TrainingGraph& graph, const std::vector<OpId>& sequence) {
  std::vector<std::size_t> first(graph.ops.size(), sequence.size());
  for (std::size_t at = sequence.size(); at-- > 0;) first.at(sequence[at]) = at;

  std::vector<char> read_later(graph.values.size(), 0);
  std::vector<OpId> reversed;
  for (std::size_t at = sequence.size(); at-- > 0;) {
    const Op& op = graph.ops[sequence[at]];
    bool needed = first[sequence[at]] == at;
    for (ValueId output : op.outputs) {
      // What is kept to the end of the step is there anyway, a second instance serves nobody.
      needed |= read_later[output] && graph.values[output].retention != Retention::kUntilStepEnd;
    }
    if (!needed) continue;
    reversed.push_back(sequence[at]);
    for (ValueId output : op.outputs) read_later[output] = 0;
    for (ValueId input : op.inputs) read_later[input] = 1;
  }
  return {reversed.rbegin(), reversed.rend()};
}

std::vector<OpId> store_all_sequence(const TrainingGraph& graph) {
  std::vector<OpId> sequence(graph.ops.size());
  for (OpId op = 0; op < graph.num_ops(); ++op) sequence[op] = op;
  return sequence;
}

}  // namespace rockmate

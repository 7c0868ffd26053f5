#include "rockmate/solvers/sequence_memory.h"

#include <algorithm>

namespace rockmate {
namespace {

constexpr int kChunk = 64;

}  // namespace

SequenceMemory::SequenceMemory(const TrainingGraph& graph, const std::vector<OpId>& sequence)
    : num_forward_(num_forward_ops(graph)) {
  collect_events(graph, sequence);
  inside_.assign(sequence.size() + 1, 0);  // differences first; one more for lifetimes that reach the end
  add_lifetimes(graph, static_cast<int>(sequence.size()));
  add_generator_states(graph, sequence);
  sum_up(graph, sequence);
}

void SequenceMemory::collect_events(const TrainingGraph& graph, const std::vector<OpId>& sequence) {
  const int length = static_cast<int>(sequence.size());
  first_event_.assign(graph.num_values() + 1, 0);
  for (OpId op : sequence) {
    for (ValueId v : graph.ops[op].inputs) ++first_event_[v + 1];
    for (ValueId v : graph.ops[op].outputs) ++first_event_[v + 1];
  }
  std::vector<char> is_read(graph.num_values());
  for (ValueId v = 0; v < graph.num_values(); ++v) is_read[v] = first_event_[v + 1] > 0;
  for (ValueId v = 0; v < graph.num_values(); ++v) {
    if (graph.values[v].kind == ValueKind::kTangent && is_read[v]) ++first_event_[v + 1];
    first_event_[v + 1] += first_event_[v];
  }
  events_.resize(first_event_.back());
  std::vector<int> next(first_event_.begin(), first_event_.end() - 1);
  for (ValueId v = 0; v < graph.num_values(); ++v) {
    if (graph.values[v].kind != ValueKind::kTangent) continue;
    tangent_bytes_ += charged_bytes(graph.values[v]);
    if (is_read[v]) events_[next[v]++] = {num_forward_, true};
  }
  for (int position = 0; position < length; ++position) {
    const Op& op = graph.ops[sequence[position]];
    for (ValueId v : op.inputs) events_[next[v]++] = {position, false};
    for (ValueId v : op.outputs) events_[next[v]++] = {position, true};
  }
}

void SequenceMemory::hold(int begin, int last, Bytes bytes) {
  inside_[begin] += bytes;
  inside_[last + 1] -= bytes;
}

void SequenceMemory::add_lifetimes(const TrainingGraph& graph, int length) {
  for (ValueId v = 0; v < graph.num_values(); ++v) {
    const Value& value = graph.values[v];
    const Bytes bytes = charged_bytes(value);
    const auto all = events(v);
    if (bytes == 0 || all.empty()) continue;
    const bool sticky = value.retention == Retention::kUntilStepEnd;
    for (std::size_t i = 0; i < all.size();) {
      if (!all[i].is_write) {  // read of a value that was never written: not a sequence that can run; leave it uncharged
        ++i;
        continue;
      }
      const int begin = all[i].position;
      int last = begin;
      std::size_t j = i + 1;
      for (; j < all.size() && !all[j].is_write; ++j) last = all[j].position;
      if (sticky) {
        last = i == 0 ? length - 1 : begin;
      } else if (value.retention == Retention::kUntilForwardEnd && begin < num_forward_) {
        last = std::max(last, num_forward_ - 1);
      }
      if (begin < length) {
        hold(begin, std::min(last, length - 1), bytes);
        if (begin < num_forward_ && last >= num_forward_) kept_bytes_ += bytes;
      }
      i = j;
    }
  }
}

void SequenceMemory::add_generator_states(const TrainingGraph& graph, const std::vector<OpId>& sequence) {
  if (graph.rng_state_bytes == 0) return;
  std::vector<int> first(graph.num_ops(), -1), last(graph.num_ops(), -1);
  const int length = static_cast<int>(sequence.size());
  for (int position = 0; position < length; ++position) {
    const OpId op = sequence[position];
    if (!graph.ops[op].is_random) continue;
    if (first[op] < 0) first[op] = position;
    if (first[op] != position) hold(position, position, graph.rng_state_bytes);
    last[op] = position;
  }
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (first[op] < last[op]) hold(first[op], last[op], graph.rng_state_bytes);
  }
}

void SequenceMemory::sum_up(const TrainingGraph& graph, const std::vector<OpId>& sequence) {
  const int length = static_cast<int>(sequence.size());
  chunk_max_.assign(length / kChunk + 1, 0);
  Bytes alive = 0;
  for (int position = 0; position < length; ++position) {
    alive += inside_[position];
    inside_[position] = alive + graph.ops[sequence[position]].workspace_bytes;
    if (inside_[position] > peak_bytes_) {
      peak_bytes_ = inside_[position];
      peak_position_ = position;
      num_at_peak_ = 0;
    }
    num_at_peak_ += inside_[position] == peak_bytes_;
    chunk_max_[position / kChunk] = std::max(chunk_max_[position / kChunk], inside_[position]);
  }
  inside_.resize(length);
  // Tangents that nobody reads are gone before the first backward op, but not before they are there.
  if (num_forward_ < length && kept_bytes_ + tangent_bytes_ > peak_bytes_) {
    peak_bytes_ = kept_bytes_ + tangent_bytes_;
    peak_position_ = num_forward_;
    num_at_peak_ = 1;
  }
}

Bytes SequenceMemory::max_inside(int begin, int end) const {
  Bytes most = 0;
  int position = begin;
  while (position < end) {
    if (position % kChunk == 0 && position + kChunk <= end) {
      most = std::max(most, chunk_max_[position / kChunk]);
      position += kChunk;
    } else {
      most = std::max(most, inside_[position++]);
    }
  }
  return most;
}

Micros sequence_time_us(const TrainingGraph& graph, const std::vector<OpId>& sequence) {
  Micros total = 0;
  for (OpId op : sequence) total += graph.ops[op].time_us;
  return total;
}

}  // namespace rockmate

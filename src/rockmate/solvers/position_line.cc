#include "rockmate/solvers/position_line.h"

#include <algorithm>
#include <cassert>

// Compiled for wider vectors too where the machine has them: most of the time goes into these loops.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define ROCKMATE_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define ROCKMATE_WIDE_VECTORS
#endif

namespace rockmate {
namespace {

// Adds to each of `count` entries; returns by how much their sum above the budget grows.
ROCKMATE_WIDE_VECTORS
Bytes add_to_all(Bytes* held, int count, Bytes bytes, Bytes budget) {
  Bytes change = 0;
  for (int i = 0; i < count; ++i) {
    const Bytes before = held[i], after = before + bytes;
    held[i] = after;
    change += std::max(after, budget) - std::max(before, budget);
  }
  return change;
}

// By how much that sum falls if each of them were less by so many bytes.
ROCKMATE_WIDE_VECTORS
Bytes freed_of_all(const Bytes* held, int count, Bytes bytes, Bytes budget) {
  Bytes freed = 0;
  for (int i = 0; i < count; ++i) freed += std::max(held[i], budget) - std::max(held[i] - bytes, budget);
  return freed;
}

ROCKMATE_WIDE_VECTORS
Bytes most_of_all(const Bytes* held, int count) {
  Bytes most = held[0];
  for (int i = 1; i < count; ++i) most = std::max(most, held[i]);
  return most;
}

}  // namespace

PositionLine::PositionLine(const TrainingGraph& graph, const std::vector<OpId>& sequence, Bytes budget_bytes)
    : graph_(graph), budget_bytes_(budget_bytes) {
  for (ValueId v = 0; v < graph.num_values(); ++v) {
    const Value& value = graph.values[v];
    counts_.push_back(!is_resident(value.kind));
    sticky_.push_back(value.retention == Retention::kUntilStepEnd);
    bytes_.push_back(charged_bytes(value));
    if (value.kind == ValueKind::kTangent) tangents_.push_back(v);
  }
  build(sequence);
}

void PositionLine::build(const std::vector<OpId>& sequence) {
  const int num_forward = num_forward_ops(graph_);
  of_op_.resize(graph_.num_ops());
  events_.resize(graph_.num_values());
  const auto place = [&](OpId op) {
    const InstanceId id = new_instance(op);
    position_[id] = length();
    order_.push_back(id);
    return id;
  };
  for (int i = 0; i < static_cast<int>(sequence.size()) + (graph_.has_boundary ? 1 : 0); ++i) {
    const bool is_boundary = graph_.has_boundary && i == num_forward;
    if (is_boundary) boundary_ = i;
    place(is_boundary ? kNone : sequence[graph_.has_boundary && i > num_forward ? i - 1 : i]);
  }
  held_.assign(order_.size(), 0);
  if (graph_.has_boundary) {
    for (ValueId v : tangents_) put_event(v, order_[boundary_], true);
  }
  for (const InstanceId id : order_) {
    if (instance_op_[id] != kNone) attach(id);
  }
  for (ValueId v = 0; v < graph_.num_values(); ++v) {
    const Value& value = graph_.values[v];
    if (value.retention != Retention::kUntilForwardEnd || value.producer >= num_forward) continue;
    const int index = event_at(v, num_forward - 1);
    const bool used_there = index < static_cast<int>(events_[v].size()) && events_[v][index].id == order_[num_forward - 1];
    if (!used_there) put_event(v, order_[num_forward - 1], false);
  }
}

std::vector<OpId> PositionLine::sequence() const {
  std::vector<OpId> result;
  result.reserve(order_.size());
  for (InstanceId id : order_) {
    if (instance_op_[id] != kNone) result.push_back(instance_op_[id]);
  }
  return result;
}

Bytes PositionLine::peak_bytes() const { return held_.empty() ? 0 : most_of_all(held_.data(), length()); }

void PositionLine::set_budget(Bytes budget_bytes) {
  budget_bytes_ = budget_bytes;
  excess_bytes_ = 0;
  for (Bytes bytes : held_) excess_bytes_ += excess(bytes);
}

Bytes PositionLine::excess_freed(int first, int last, Bytes bytes) const {
  if (first > last) return 0;
  return freed_of_all(held_.data() + first, last - first + 1, bytes, budget_bytes_);
}

int PositionLine::scarcest(int first, int last) const {
  const Bytes most = most_of_all(held_.data() + first, last - first + 1);
  while (held_[first] != most) ++first;
  return first;
}

PositionLine::InstanceId PositionLine::new_instance(OpId op) {
  InstanceId id = static_cast<InstanceId>(instance_op_.size());
  if (free_instances_.empty()) {
    instance_op_.push_back(op);
    position_.push_back(0);
  } else {
    id = free_instances_.back();
    free_instances_.pop_back();
  }
  instance_op_[id] = op;
  return id;
}

PositionLine::InstanceId PositionLine::insert(OpId op, int position) {
  assert(position > boundary_);
  const InstanceId id = new_instance(op);
  const Bytes before = position > 0 ? held_behind(position - 1) : 0;
  for (int p = position; p < length(); ++p) ++position_[order_[p]];
  order_.insert(order_.begin() + position, id);
  held_.insert(held_.begin() + position, before);
  excess_bytes_ += excess(before);
  position_[id] = position;
  attach(id);
  return id;
}

bool PositionLine::can_erase(InstanceId id) const {
  const OpId own = instance_op_[id];
  if (position_[id] <= boundary_ || of_op_[own].size() < 2 || !may_repeat(graph_, own)) return false;
  const Op& op = graph_.ops[own];
  if (op.is_random && of_op_[own].front() == id) return false;
  return std::all_of(op.outputs.begin(), op.outputs.end(), [&](ValueId v) {
    if (!counts_[v]) return true;
    const int index = event_at(v, position_[id]);
    const bool is_read = index + 1 < static_cast<int>(events_[v].size()) && !events_[v][index + 1].is_write;
    return index > 0 || !is_read;
  });
}

void PositionLine::erase(InstanceId id) {
  detach(id);
  const int position = position_[id];
  excess_bytes_ -= excess(held_[position]);
  order_.erase(order_.begin() + position);
  held_.erase(held_.begin() + position);
  for (int p = position; p < length(); ++p) --position_[order_[p]];
  free_instances_.push_back(id);
}

void PositionLine::move(InstanceId id, int position) {
  assert(position > boundary_ && position < length());
  detach(id);
  const int from = position_[id];
  excess_bytes_ -= excess(held_[from]);
  if (position > from) {
    for (int p = from; p < position; ++p) {
      order_[p] = order_[p + 1];
      held_[p] = held_[p + 1];
      position_[order_[p]] = p;
    }
  } else {
    for (int p = from; p > position; --p) {
      order_[p] = order_[p - 1];
      held_[p] = held_[p - 1];
      position_[order_[p]] = p;
    }
  }
  order_[position] = id;
  position_[id] = position;
  held_[position] = position > 0 ? held_behind(position - 1) : 0;
  excess_bytes_ += excess(held_[position]);
  attach(id);
}

PositionLine::Window PositionLine::window_of(InstanceId id) const {
  const OpId own = instance_op_[id];
  Window window{boundary_ + 1, length() - 1};
  if (own == kNone || position_[id] <= boundary_ || graph_.ops[own].is_random) return {1, 0};
  const Op& op = graph_.ops[own];
  for (ValueId v : op.inputs) {
    if (!counts_[v] || events_[v].empty()) continue;
    window.first = std::max(window.first, position_[events_[v].front().id] + 1);
  }
  for (ValueId v : op.outputs) {
    if (!counts_[v]) continue;
    const auto& all = events_[v];
    if (all.front().id != id || all.size() < 2) continue;  // an earlier write serves whoever this one leaves behind
    if (!all[1].is_write) window.last = std::min(window.last, position_[all[1].id] - 1);
  }
  return window;
}

int PositionLine::event_at(ValueId value, int position) const {
  const auto& all = events_[value];
  int index = static_cast<int>(all.size());
  while (index > 0 && position_[all[index - 1].id] >= position) --index;
  return index;
}

void PositionLine::attach(InstanceId id) {
  const OpId op = instance_op_[id];
  const Op& what = graph_.ops[op];
  charge_generator(op, -1);
  auto& siblings = of_op_[op];
  const int position = position_[id];
  siblings.insert(std::find_if(siblings.begin(), siblings.end(), [&](InstanceId other) { return position_[other] > position; }),
                  id);
  charge_generator(op, 1);
  add(position, position, what.workspace_bytes);
  for (ValueId v : what.inputs) put_event(v, id, false);
  for (ValueId v : what.outputs) put_event(v, id, true);
  time_us_ += what.time_us;
  update_repeats(op);
}

void PositionLine::detach(InstanceId id) {
  const OpId op = instance_op_[id];
  const Op& what = graph_.ops[op];
  for (ValueId v : what.inputs) drop_event(v, id);
  for (ValueId v : what.outputs) drop_event(v, id);
  const int position = position_[id];
  add(position, position, -what.workspace_bytes);
  charge_generator(op, -1);
  std::erase(of_op_[op], id);
  charge_generator(op, 1);
  time_us_ -= what.time_us;
  repeats_.set(id, false);
  update_repeats(op);
}

void PositionLine::put_event(ValueId value, InstanceId id, bool is_write) {
  if (!counts_[value]) return;
  auto& all = events_[value];
  const auto index = static_cast<std::size_t>(event_at(value, position_[id]));
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(index), {id, is_write});
  charge_event(value, index, 1);
}

void PositionLine::drop_event(ValueId value, InstanceId id) {
  if (!counts_[value]) return;
  auto& all = events_[value];
  const auto index = static_cast<std::size_t>(event_at(value, position_[id]));
  charge_event(value, index, -1);
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(index));
}

// What the event at `index` adds to the memory, or with sign -1 takes from it.
void PositionLine::charge_event(ValueId value, std::size_t index, Bytes sign) {
  const Bytes bytes = sign * bytes_[value];
  if (bytes == 0) return;
  const auto& all = events_[value];
  const auto position = [&](std::size_t i) { return position_[all[i].id]; };
  const auto next_write = [&] {
    std::size_t i = index + 1;
    while (i < all.size() && !all[i].is_write) ++i;
    return i;
  };
  const int here = position(index);
  if (sticky_[value]) {
    if (!all[index].is_write) return;
    bool is_second = false;
    for (std::size_t i = 0; i < index; ++i) is_second = is_second || all[i].is_write;
    const std::size_t next = next_write();
    add(here, is_second ? here : next == all.size() ? length() - 1 : position(next), bytes);
    return;
  }
  const bool read_next = index + 1 < all.size() && !all[index + 1].is_write;
  if (!all[index].is_write) {
    if (!read_next && index > 0) add(position(index - 1) + 1, here, bytes);
  } else if (!read_next) {
    add(here, here, bytes);
  } else if (index > 0) {
    add(position(index - 1) + 1, here - 1, -bytes);
  } else {
    add(here, position(next_write() - 1), bytes);
  }
}

void PositionLine::charge_generator(OpId op, Bytes sign) {
  if (!graph_.ops[op].is_random || graph_.rng_state_bytes == 0 || of_op_[op].size() < 2) return;
  const Bytes bytes = sign * graph_.rng_state_bytes;
  const auto& siblings = of_op_[op];
  add(position_[siblings.front()], position_[siblings.back()], bytes);
  for (std::size_t i = 1; i < siblings.size(); ++i) {
    add(position_[siblings[i]], position_[siblings[i]], bytes);
  }
}

void PositionLine::add(int first, int last, Bytes bytes) {
  if (bytes == 0 || first > last) return;
  excess_bytes_ += add_to_all(held_.data() + first, last - first + 1, bytes, budget_bytes_);
}

Bytes PositionLine::held_behind(int position) const {
  const InstanceId id = order_[position];
  const OpId op = instance_op_[id];
  Bytes bytes = held_[position];
  if (op == kNone) {
    for (ValueId v : tangents_) bytes -= ends_at(v, id) ? bytes_[v] : 0;
    return bytes;
  }
  const Op& what = graph_.ops[op];
  bytes -= what.workspace_bytes;
  for (ValueId v : what.inputs) bytes -= ends_at(v, id) ? bytes_[v] : 0;
  for (ValueId v : what.outputs) bytes -= ends_at(v, id) ? bytes_[v] : 0;
  const auto& siblings = of_op_[op];
  if (what.is_random && siblings.size() > 1) {
    if (siblings.front() != id) bytes -= graph_.rng_state_bytes;
    if (siblings.back() == id) bytes -= graph_.rng_state_bytes;
  }
  return bytes;
}

bool PositionLine::ends_at(ValueId value, InstanceId id) const {
  if (!counts_[value] || bytes_[value] == 0) return false;
  const auto& all = events_[value];
  const auto index = static_cast<std::size_t>(event_at(value, position_[id]));
  if (sticky_[value]) {
    if (!all[index].is_write) return false;
    return std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(index),
                       [](const Event& e) { return e.is_write; });
  }
  return index + 1 == all.size() || all[index + 1].is_write;
}

void PositionLine::update_repeats(OpId op) {
  const auto& siblings = of_op_[op];
  for (InstanceId id : siblings) repeats_.set(id, siblings.size() > 1 && position_[id] > boundary_);
}

}  // namespace rockmate

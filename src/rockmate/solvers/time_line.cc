#include "rockmate/solvers/time_line.h"

#include <algorithm>

namespace rockmate {
namespace {

constexpr int kRoom = 64;  // slots for each instance behind the boundary

}  // namespace

TimeLine::TimeLine(const TrainingGraph& graph, const std::vector<OpId>& sequence)
    : graph_(graph), num_forward_(num_forward_ops(graph)) {
  for (ValueId v = 0; v < graph.num_values(); ++v) {
    const Value& value = graph.values[v];
    counts_.push_back(!is_resident(value.kind));
    bytes_.push_back(charged_bytes(value));
    const bool movable = value.producer != kNone && value.producer >= num_forward_ && !graph.ops[value.producer].is_random;
    evictable_.push_back(bytes_[v] > 0 && value.producer != kNone && value.retention != Retention::kUntilStepEnd &&
                         (movable || may_repeat(graph, value.producer)));
  }
  build(sequence);
}

void TimeLine::build(const std::vector<OpId>& sequence) {
  const int edited = static_cast<int>(sequence.size()) - num_forward_;
  const int first_edited = graph_.has_boundary ? num_forward_ + 1 : 0;
  const int slots = first_edited + kRoom * (edited + 1);
  boundary_slot_ = graph_.has_boundary ? num_forward_ : -1;
  last_slot_ = slots - 1;
  time_us_ = 0;
  memory_ = SlotMemory(slots);
  instances_.clear();
  free_instances_.clear();
  repeats_.clear();
  all_.clear();
  by_slot_.assign(slots, kNone);
  of_op_.assign(graph_.num_ops(), {});
  events_.assign(graph_.num_values(), {});
  gap_first_.clear();
  gap_last_.clear();
  gap_value_.clear();
  gap_follows_write_.clear();
  free_gaps_.clear();
  for (ValueId v = 0; v < graph_.num_values(); ++v) {
    if (graph_.values[v].kind == ValueKind::kTangent) put_event(v, boundary_slot_, true);
  }
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    const int at = static_cast<int>(i);
    insert(sequence[i], at < num_forward_ ? at : first_edited + kRoom * (at - num_forward_) + kRoom - 1);
  }
  for (ValueId v = 0; v < graph_.num_values(); ++v) {
    const Value& value = graph_.values[v];
    if (value.retention != Retention::kUntilForwardEnd || value.producer >= num_forward_) continue;
    const int index = event_at(v, num_forward_ - 1);
    const bool used_there = index < static_cast<int>(events_[v].size()) && events_[v][index].slot == num_forward_ - 1;
    if (!used_there) put_event(v, num_forward_ - 1, false);
  }
}

std::vector<OpId> TimeLine::sequence() const {
  std::vector<OpId> result;
  for (InstanceId id : by_slot_) {
    if (id != kNone) result.push_back(instances_[id].op);
  }
  return result;
}

void TimeLine::respread() { build(sequence()); }

int TimeLine::slot_before(int slot) const {
  do {
    --slot;
  } while (slot > boundary_slot_ && by_slot_[slot] == kNone);
  return slot;
}

int TimeLine::event_at(ValueId value, int slot) const {
  const auto& all = events_[value];
  return static_cast<int>(std::lower_bound(all.begin(), all.end(), slot, [](const Event& e, int s) { return e.slot < s; }) -
                          all.begin());
}

bool TimeLine::can_insert(OpId op, int slot) const {
  if (slot <= boundary_slot_ || slot > last_slot_ || by_slot_[slot] != kNone) return false;
  if (!of_op_[op].empty()) {
    if (!may_repeat(graph_, op)) return false;
    if (graph_.ops[op].is_random && slot < instances_[of_op_[op].front()].slot) return false;
  }
  return std::all_of(graph_.ops[op].inputs.begin(), graph_.ops[op].inputs.end(),
                     [&](ValueId v) { return !counts(v) || event_at(v, slot) > 0; });
}

void TimeLine::insert(OpId op, int slot) {
  InstanceId id = static_cast<InstanceId>(instances_.size());
  if (free_instances_.empty()) {
    instances_.emplace_back();
  } else {
    id = free_instances_.back();
    free_instances_.pop_back();
  }
  instances_[id] = {op, slot};
  by_slot_[slot] = id;
  charge_generator(op, -1);
  auto& siblings = of_op_[op];
  siblings.insert(std::upper_bound(siblings.begin(), siblings.end(), slot,
                                   [&](int s, InstanceId other) { return s < instances_[other].slot; }),
                  id);
  charge_generator(op, 1);
  const Op& what = graph_.ops[op];
  memory_.add(slot, slot, what.workspace_bytes);
  for (ValueId v : what.inputs) put_event(v, slot, false);
  for (ValueId v : what.outputs) put_event(v, slot, true);
  time_us_ += what.time_us;
  if (slot > boundary_slot_) all_.set(id, true);
  update_repeats(op);
}

bool TimeLine::can_erase(InstanceId id) const {
  const Instance& instance = instances_[id];
  if (instance.slot <= boundary_slot_ || of_op_[instance.op].size() < 2 || !may_repeat(graph_, instance.op)) return false;
  const Op& op = graph_.ops[instance.op];
  if (op.is_random && is_first(id)) return false;
  return std::all_of(op.outputs.begin(), op.outputs.end(), [&](ValueId v) {
    const int index = event_at(v, instance.slot);
    const bool is_read = index + 1 < static_cast<int>(events_[v].size()) && !events_[v][index + 1].is_write;
    return index > 0 || !is_read;
  });
}

void TimeLine::erase(InstanceId id) {
  const auto [op, slot] = instances_[id];
  const Op& what = graph_.ops[op];
  for (ValueId v : what.inputs) drop_event(v, slot);
  for (ValueId v : what.outputs) drop_event(v, slot);
  memory_.add(slot, slot, -what.workspace_bytes);
  charge_generator(op, -1);
  std::erase(of_op_[op], id);
  charge_generator(op, 1);
  time_us_ -= what.time_us;
  by_slot_[slot] = kNone;
  repeats_.set(id, false);
  all_.set(id, false);
  free_instances_.push_back(id);
  update_repeats(op);
}

void TimeLine::put_event(ValueId value, int slot, bool is_write) {
  if (!counts(value)) return;
  auto& all = events_[value];
  const auto index = static_cast<std::size_t>(event_at(value, slot));
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(index), {slot, is_write, is_write ? -1 : new_gap(value)});
  charge_insertion(value, index, 1);
  set_gap(value, index);
  set_gap(value, index + 1);
}

void TimeLine::drop_event(ValueId value, int slot) {
  if (!counts(value)) return;
  auto& all = events_[value];
  const auto index = static_cast<std::size_t>(event_at(value, slot));
  charge_insertion(value, index, -1);
  if (const std::int32_t gap = all[index].gap; gap >= 0) {
    gap_first_[gap] = gap_last_[gap] = 0;
    free_gaps_.push_back(gap);
  }
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(index));
  set_gap(value, index);
}

// What the event at `index` adds to the memory, or with sign -1 takes from it.
void TimeLine::charge_insertion(ValueId value, std::size_t index, Bytes sign) {
  const Bytes bytes = sign * bytes_[value];
  if (bytes == 0) return;
  const auto& all = events_[value];
  const int slot = all[index].slot;
  const auto next_write = [&] {
    return std::find_if(all.begin() + static_cast<std::ptrdiff_t>(index) + 1, all.end(),
                        [](const Event& e) { return e.is_write; });
  };
  if (graph_.values[value].retention == Retention::kUntilStepEnd) {
    if (!all[index].is_write) return;
    const bool is_second =
        std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(index), [](const Event& e) { return e.is_write; });
    const auto next = next_write();
    memory_.add(slot, is_second ? slot : next == all.end() ? last_slot_ : next->slot, bytes);
    return;
  }
  const bool read_next = index + 1 < all.size() && !all[index + 1].is_write;
  if (!all[index].is_write) {
    if (!read_next && index > 0) memory_.add(all[index - 1].slot + 1, slot, bytes);
  } else if (!read_next) {
    memory_.add(slot, slot, bytes);
  } else if (index > 0) {
    memory_.add(all[index - 1].slot + 1, slot - 1, -bytes);
  } else {
    memory_.add(slot, std::prev(next_write())->slot, bytes);
  }
}

void TimeLine::set_gap(ValueId value, std::size_t index) {
  const auto& all = events_[value];
  if (index >= all.size() || all[index].gap < 0) return;
  const Event& read = all[index];
  const bool can_be_filled = index > 0 && read.slot > boundary_slot_;
  gap_last_[read.gap] = read.slot;
  gap_follows_write_[read.gap] = index > 0 && all[index - 1].is_write;
  gap_first_[read.gap] = can_be_filled ? all[index - 1].slot : read.slot;
}

std::int32_t TimeLine::new_gap(ValueId value) {
  if (!evictable_[value]) return -1;
  if (!free_gaps_.empty()) {
    const std::int32_t gap = free_gaps_.back();
    free_gaps_.pop_back();
    gap_value_[gap] = value;
    return gap;
  }
  gap_first_.push_back(0);
  gap_last_.push_back(0);
  gap_value_.push_back(value);
  gap_follows_write_.push_back(0);
  return static_cast<std::int32_t>(gap_value_.size()) - 1;
}

void TimeLine::charge_generator(OpId op, Bytes sign) {
  if (!graph_.ops[op].is_random || graph_.rng_state_bytes == 0 || of_op_[op].size() < 2) return;
  const Bytes bytes = sign * graph_.rng_state_bytes;
  const auto& siblings = of_op_[op];
  memory_.add(instances_[siblings.front()].slot, instances_[siblings.back()].slot, bytes);
  for (std::size_t i = 1; i < siblings.size(); ++i)
    memory_.add(instances_[siblings[i]].slot, instances_[siblings[i]].slot, bytes);
}

void TimeLine::update_repeats(OpId op) {
  const auto& siblings = of_op_[op];
  for (InstanceId id : siblings) repeats_.set(id, siblings.size() > 1 && instances_[id].slot > boundary_slot_);
}

}  // namespace rockmate

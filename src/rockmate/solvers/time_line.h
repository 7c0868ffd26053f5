// A sequence laid out on slots with room between them, so that ops can be put in, taken out and moved one by one while the
// exact memory of the whole is kept: the incremental simulator of the solvers that change sequences a million times.
//
// An instance is one run of an op, at one slot. Each value has its events in order of slots: writes, and reads, which see the
// last write before them. A value is held from a write to the last read before the next write. So putting an instance in or out
// changes one range of slots for each of its inputs and outputs:
//
//   slot      0    8    16   24   32            slot      0    8    16   24  28  32
//   op        a    b    c    d    e             op        a    b    c    d   a'  e
//   value a   w────r─────────────►r             value a   w────r             w──►r     held on 9 .. 27 no more
//
// The judge of a finished plan is the simulator; this shares nothing with it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rockmate/graph/graph.h"
#include "rockmate/solvers/pick_list.h"
#include "rockmate/solvers/slot_memory.h"

namespace rockmate {

class TimeLine {
 public:
  using InstanceId = std::int32_t;

  TimeLine(const TrainingGraph& graph, const std::vector<OpId>& sequence);

  std::vector<OpId> sequence() const;
  Bytes peak_bytes() const { return memory_.most(); }
  int peak_slot() const { return memory_.where(); }
  Bytes most_bytes(int first_slot, int last_slot) const { return memory_.most(first_slot, last_slot); }
  Micros time_us() const { return time_us_; }

  // Editing. A false return changes nothing.
  bool can_insert(OpId op, int slot) const;  // the slot is empty, behind the boundary, and every input is written before it
  void insert(OpId op, int slot);
  bool can_erase(InstanceId id) const;  // not the only one, not of the forward pass, and all that read it find an earlier write
  void erase(InstanceId id);
  // Spreads the instances evenly again. Slots and instance ids change.
  void respread();

  // Looking.
  OpId op_of(InstanceId id) const { return instances_[id].op; }
  int slot_of(InstanceId id) const { return instances_[id].slot; }
  InstanceId at(int slot) const { return by_slot_[slot]; }  // kNone when empty
  int boundary_slot() const { return boundary_slot_; }      // instances behind it can be edited; -1 without a boundary
  int num_slots() const { return static_cast<int>(by_slot_.size()); }
  int slot_before(int slot) const;  // of the instance before, or the boundary's
  const std::vector<InstanceId>& instances_of(OpId op) const { return of_op_[op]; }
  bool is_first(InstanceId id) const { return of_op_[instances_[id].op].front() == id; }
  // Instances that could be erased, as far as their number and place say: all but forward ops' first and single ones.
  const std::vector<InstanceId>& repeats() const { return repeats_.items(); }
  const std::vector<InstanceId>& all() const { return all_.items(); }

  struct Event {
    int slot;
    bool is_write;
    std::int32_t gap;  // of a read: index of the gap before it
  };
  std::span<const Event> events(ValueId value) const { return events_[value]; }
  // Index of the first event at or behind the slot.
  int event_at(ValueId value, int slot) const;

  // Gaps: a value is held from slot `first` to a read at slot `last` and not used in between. Kept as flat arrays, to be
  // scanned. Only charged values that an op may write later count, recomputed or moved; other gaps are empty (first == last).
  std::span<const int> gap_first() const { return gap_first_; }
  std::span<const int> gap_last() const { return gap_last_; }
  ValueId gap_value(int gap) const { return gap_value_[gap]; }
  bool gap_follows_write(int gap) const { return gap_follows_write_[gap] != 0; }

 private:
  struct Instance {
    OpId op = kNone;
    int slot = 0;
  };

  void build(const std::vector<OpId>& sequence);
  void put_event(ValueId value, int slot, bool is_write);
  void drop_event(ValueId value, int slot);
  void charge_insertion(ValueId value, std::size_t index, Bytes sign);
  void set_gap(ValueId value, std::size_t index);
  std::int32_t new_gap(ValueId value);
  void charge_generator(OpId op, Bytes sign);
  void update_repeats(OpId op);
  bool counts(ValueId value) const { return counts_[value]; }

  const TrainingGraph& graph_;
  int num_forward_;
  Micros time_us_ = 0;
  SlotMemory memory_{1};
  std::vector<Instance> instances_;
  std::vector<InstanceId> free_instances_, by_slot_;
  PickList repeats_, all_;
  std::vector<std::vector<InstanceId>> of_op_;
  std::vector<std::vector<Event>> events_;
  std::vector<char> counts_;     // value: not resident
  std::vector<Bytes> bytes_;     // value: charged
  std::vector<char> evictable_;  // value: charged, dies at its last use, its producer may run again or elsewhere
  std::vector<char> gap_follows_write_;
  std::vector<int> gap_first_, gap_last_;
  std::vector<ValueId> gap_value_;
  std::vector<std::int32_t> free_gaps_;
  int boundary_slot_ = -1, last_slot_ = 0;
};

}  // namespace rockmate

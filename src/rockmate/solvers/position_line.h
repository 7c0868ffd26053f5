// A sequence as an array of positions, its memory at each of them and the sum of what exceeds a budget, kept exact while ops
// are put in, taken out and moved one by one.
//
// The line of time_line.h answers "the most bytes in a range" in O(log slots), and so serves searches that look at the peak.
// A search that begins far above the budget needs more: the peak is one position, and hardly a change lowers it. Here the
// measure is the excess, summed over all positions,
//
//   excess = sum over positions p of max(held(p) - budget, 0)
//
//   held      5   9   8   9   6   4      budget 7: excess 2 + 1 + 2 = 5; a value of 1 byte held on positions 1 .. 2 less
//             a   b   c   d   e   f      leaves the peak at 9, and the excess at 3
//
// A sum of clipped terms has no segment tree, so an edit walks over the positions that it touches: O(length) at worst, with
// very little to do for each. Made for sequences up to some ten thousand ops.
//
// Events, instances and what they are charged are those of time_line.h. The judge of a finished plan is the simulator; this
// shares nothing with it.
#pragma once

#include <cstdint>
#include <vector>

#include "rockmate/graph/graph.h"
#include "rockmate/solvers/pick_list.h"

namespace rockmate {

class PositionLine {
 public:
  using InstanceId = std::int32_t;

  PositionLine(const TrainingGraph& graph, const std::vector<OpId>& sequence, Bytes budget_bytes);

  std::vector<OpId> sequence() const;
  Micros time_us() const { return time_us_; }
  Bytes peak_bytes() const;
  Bytes excess_bytes() const { return excess_bytes_; }
  Bytes budget_bytes() const { return budget_bytes_; }
  // By how much the excess falls when the positions first .. last hold so many bytes less.
  Bytes excess_freed(int first, int last, Bytes bytes) const;
  void set_budget(Bytes budget_bytes);

  // Editing, behind the boundary only. An instance is put in before the one that is at `position` now. An instance that moves
  // is at `position` afterwards.
  InstanceId insert(OpId op, int position);
  bool can_erase(InstanceId id) const;  // not the only one, not of the forward pass, and all that read it find an earlier write
  void erase(InstanceId id);
  void move(InstanceId id, int position);

  // Where the instance may move, as far as what it reads and who reads it say; first > last when it must stay.
  struct Window {
    int first, last;
  };
  Window window_of(InstanceId id) const;

  // Looking.
  int length() const { return static_cast<int>(order_.size()); }
  int first_position() const { return boundary_ + 1; }  // of those that can be edited
  InstanceId at(int position) const { return order_[position]; }
  Bytes held_bytes(int position) const { return held_[position]; }
  int scarcest(int first, int last) const;  // the first position of those where most bytes are held
  OpId op_of(InstanceId id) const { return instance_op_[id]; }
  int position_of(InstanceId id) const { return position_[id]; }
  const std::vector<InstanceId>& instances_of(OpId op) const { return of_op_[op]; }  // in order
  // Instances that could be erased, as far as their number and place say.
  const std::vector<InstanceId>& repeats() const { return repeats_.items(); }

  struct Event {
    InstanceId id;
    bool is_write;
  };
  // Writes and reads of a value that is not resident, in order.
  const std::vector<Event>& events(ValueId value) const { return events_[value]; }
  // Index of the first event at or behind the position.
  int event_at(ValueId value, int position) const;

 private:
  void build(const std::vector<OpId>& sequence);
  InstanceId new_instance(OpId op);
  void attach(InstanceId id);  // charges the instance where it is
  void detach(InstanceId id);
  void put_event(ValueId value, InstanceId id, bool is_write);
  void drop_event(ValueId value, InstanceId id);
  void charge_event(ValueId value, std::size_t index, Bytes sign);
  void charge_generator(OpId op, Bytes sign);
  void add(int first, int last, Bytes bytes);
  Bytes held_behind(int position) const;  // what is still held when the instance there has run
  bool ends_at(ValueId value, InstanceId id) const;
  Bytes excess(Bytes bytes) const { return bytes > budget_bytes_ ? bytes - budget_bytes_ : 0; }
  void update_repeats(OpId op);

  const TrainingGraph& graph_;
  Bytes budget_bytes_;
  Micros time_us_ = 0;
  Bytes excess_bytes_ = 0;
  int boundary_ = -1;              // its position; -1 without one
  std::vector<OpId> instance_op_;  // kNone: the boundary
  std::vector<int> position_;      // of each instance
  std::vector<InstanceId> free_instances_, order_;
  PickList repeats_;
  std::vector<std::vector<InstanceId>> of_op_;
  std::vector<std::vector<Event>> events_;
  std::vector<Bytes> held_;   // bytes while each position runs
  std::vector<char> counts_;  // value: not resident
  std::vector<char> sticky_;  // value: kept until the step ends
  std::vector<Bytes> bytes_;  // value: charged
  std::vector<ValueId> tangents_;
};

}  // namespace rockmate

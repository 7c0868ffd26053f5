#include "rockmate/planners/moments.h"

#include <algorithm>

namespace rockmate {

Moment MomentMaker::make(OpId d) const {
  Moment moment;
  moment.has_run.assign(graph_.num_ops(), 0);
  moment.will_run.assign(graph_.num_ops(), 0);
  if (d == kBoundary || d < num_forward_) {
    const OpId end = d == kBoundary ? num_forward_ : d + 1;
    for (OpId op = 0; op < graph_.num_ops(); ++op) (op < end ? moment.has_run : moment.will_run)[op] = 1;
  } else {
    mark_ancestors(d, moment.has_run);
    mark_descendants(d, moment.will_run);
  }
  set_values(d, moment);
  set_prices(moment);
  set_reads(moment);
  return moment;
}

void MomentMaker::hold(ValueId v, Moment& moment) const {
  if (moment.at[v] == Moment::At::kHeld) return;
  moment.at[v] = Moment::At::kHeld;
  moment.fixed_bytes += charged_bytes(graph_.values[v]);
}

void MomentMaker::mark_ancestors(OpId d, std::vector<char>& marked) const {
  std::fill(marked.begin(), marked.begin() + num_forward_, 1);
  marked[d] = 1;
  for (OpId op = d; op >= num_forward_; --op) {
    if (!marked[op]) continue;
    for (ValueId v : graph_.ops[op].inputs) {
      if (graph_.values[v].producer != kNone) marked[graph_.values[v].producer] = 1;
    }
  }
}

void MomentMaker::mark_descendants(OpId d, std::vector<char>& marked) const {
  marked[d] = 1;
  for (OpId op = d; op < graph_.num_ops(); ++op) {
    if (!marked[op]) continue;
    for (ValueId v : graph_.ops[op].outputs) {
      for (OpId reader : readers_[v]) marked[reader] = 1;
    }
  }
  marked[d] = 0;
}

void MomentMaker::set_values(OpId d, Moment& moment) const {
  moment.at.assign(graph_.num_values(), Moment::At::kOpen);
  const bool in_forward = d != kBoundary && d < num_forward_;
  for (ValueId v = 0; v < graph_.num_values(); ++v) {
    const Value& value = graph_.values[v];
    const bool leaves = value.retention == Retention::kUntilStepEnd;
    if (is_resident(value.kind)) {
      hold(v, moment);  // for nothing
    } else if (value.producer == kNone) {
      if (in_forward) moment.at[v] = Moment::At::kUnborn;
      if (d == kBoundary || (leaves && !in_forward)) hold(v, moment);
    } else if (moment.will_run[value.producer]) {
      moment.at[v] = Moment::At::kUnborn;
    } else if (moment.has_run[value.producer]) {
      const bool until_forward_end = in_forward && value.retention == Retention::kUntilForwardEnd;
      if (leaves || until_forward_end) hold(v, moment);
    }
  }
  if (d == kBoundary) return;
  moment.fixed_bytes += graph_.ops[d].workspace_bytes;
  for (ValueId v : graph_.ops[d].inputs) hold(v, moment);
  for (ValueId v : graph_.ops[d].outputs) hold(v, moment);
}

void MomentMaker::set_prices(Moment& moment) const {
  moment.rerun_us.assign(graph_.num_ops(), 0);
  for (OpId op = 0; op < graph_.num_ops(); ++op) {
    if (moment.has_run[op]) moment.rerun_us[op] = may_repeat(graph_, op) ? graph_.ops[op].time_us : kNever;
  }
}

void MomentMaker::set_reads(Moment& moment) const {
  std::vector<char> read(graph_.num_values(), 0);
  for (OpId op = 0; op < graph_.num_ops(); ++op) {
    if (!moment.will_run[op]) continue;
    for (ValueId v : graph_.ops[op].inputs) {
      if (read[v]++ || is_resident(graph_.values[v].kind)) continue;
      // In the forward pass nothing can be recomputed: what is read later in it is held.
      if (op < num_forward_ && moment.at[v] == Moment::At::kOpen) hold(v, moment);
      if (op >= num_forward_) moment.reads.push_back(v);
    }
  }
}

}  // namespace rockmate

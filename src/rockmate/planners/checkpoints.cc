#include "rockmate/planners/checkpoints.h"

#include <algorithm>
#include <numeric>

namespace rockmate {

Checkpoints::Checkpoints(const TrainingGraph& graph, std::vector<int> segment_of)
    : graph_(graph), num_forward_(num_forward_ops(graph)), readers_(readers_of(graph)), segment_of_(std::move(segment_of)) {
  for (int segment : segment_of_) num_segments_ = std::max(num_segments_, segment + 1);
  segment_of_.resize(graph.num_ops(), num_segments_ - 1);
  segment_bytes_.assign(num_segments_, 0);
  written_.resize(num_segments_);
  own_backward_.resize(graph.num_values());
  for (OpId op = 0; op < num_forward_; ++op) {
    for (ValueId v : graph.ops[op].outputs) {
      segment_bytes_[segment_of_[op]] += charged_bytes(graph.values[v]);
      const bool stays = !graph.ops[op].recomputable || graph.values[v].retention == Retention::kUntilStepEnd;
      if (!stays) written_[segment_of_[op]].push_back(v);
      const auto& readers = readers_[v];
      own_backward_[v].assign(std::lower_bound(readers.begin(), readers.end(), num_forward_), readers.end());
    }
  }
  assign_backward();
}

void Checkpoints::assign_backward() {
  std::vector<int> home(graph_.num_values(), num_segments_ - 1);
  for (OpId op = 0; op < num_forward_; ++op) {
    for (ValueId v : graph_.ops[op].outputs) {
      home[v] = segment_of_[op];
      for (OpId reader : readers_[v]) {
        if (reader < num_forward_) home[v] = std::max(home[v], segment_of_[reader]);
      }
    }
  }
  int random_limit = num_segments_ - 1;
  std::vector<OpId> free_ops;
  for (OpId op = num_forward_; op < graph_.num_ops(); ++op) {
    const bool is_random = graph_.ops[op].is_random;
    int segment = is_random ? random_limit : num_segments_ - 1;
    bool is_free = !is_random;
    for (ValueId v : graph_.ops[op].inputs) {
      const OpId producer = graph_.values[v].producer;
      if (producer == kNone) continue;
      if (producer < num_forward_) is_free = false;
      segment = std::min(segment, producer < num_forward_ ? home[v] : segment_of_[producer]);
    }
    segment_of_[op] = segment;
    if (is_random) random_limit = segment;
    if (is_free) free_ops.push_back(op);
  }
  delay_free_ops(free_ops);
  backward_.resize(num_segments_);
  for (OpId op = num_forward_; op < graph_.num_ops(); ++op) backward_[segment_of_[op]].push_back(op);
}

// An op that only works on gradients waits for its first reader when it makes more bytes than it lets go.
void Checkpoints::delay_free_ops(const std::vector<OpId>& free_ops) {
  for (auto op = free_ops.rbegin(); op != free_ops.rend(); ++op) {
    int first_read = -1;
    Bytes made = 0, released = 0;
    for (ValueId v : graph_.ops[*op].outputs) {
      made += charged_bytes(graph_.values[v]);
      for (OpId reader : readers_[v]) first_read = std::max(first_read, segment_of_[reader]);
    }
    for (ValueId v : graph_.ops[*op].inputs) {
      const bool dies = readers_[v].size() == 1 && graph_.values[v].retention == Retention::kUntilLastUse;
      if (dies) released += charged_bytes(graph_.values[v]);
    }
    if (first_read >= 0 && made > released) segment_of_[*op] = std::min(segment_of_[*op], first_read);
  }
}

// Writes one sequence: knows what is kept at the moment.
class CheckpointWriter {
 public:
  CheckpointWriter(const Checkpoints& plan, const Checkpoints::Split& split)
      : plan_(plan),
        split_(split),
        kept_(plan.graph_.num_values(), true),
        wanted_(plan.graph_.num_values(), false),
        done_(plan.graph_.num_ops(), false),
        seen_(plan.graph_.num_ops(), false) {
    sequence_.resize(plan.num_forward_);
    std::iota(sequence_.begin(), sequence_.end(), 0);
  }

  std::vector<OpId> run() {
    backward(0, plan_.num_segments_);
    return std::move(sequence_);
  }

 private:
  void backward(int begin, int end) {
    std::vector<int> borders = split_(begin, end);
    if (borders.empty()) return leaf(begin, end);
    borders.insert(borders.begin(), begin);
    borders.push_back(end);
    forward(borders);
    for (std::size_t part = borders.size() - 1; part > 0; --part) backward(borders[part - 1], borders[part]);
  }

  // Runs all parts but the last and keeps what later parts read.
  void forward(const std::vector<int>& borders) {
    const int begin = borders.front(), end = borders.back();
    std::vector<ValueId> wanted;
    for (std::size_t part = 1; part + 1 < borders.size(); ++part) {
      const int next = borders[part];
      for (int segment = borders[part - 1]; segment < next; ++segment) {
        for (ValueId v : plan_.written_[segment]) {
          const auto& readers = plan_.readers_[v];
          const bool crosses = std::any_of(readers.begin(), readers.end(), [&](OpId reader) {
            return plan_.segment_of_[reader] >= next && plan_.segment_of_[reader] < end && !done_[reader];
          });
          if (crosses) wanted.push_back(v);
        }
      }
    }
    make(wanted);
    for (int segment = begin; segment < borders[borders.size() - 2]; ++segment) {
      for (ValueId v : plan_.written_[segment]) kept_[v] = wanted_[v];
    }
    for (ValueId v : wanted) wanted_[v] = false;
  }

  void leaf(int begin, int end) {
    std::vector<ValueId> wanted;
    std::vector<OpId> ops;
    for (int segment = begin; segment < end; ++segment) {
      for (ValueId v : plan_.written_[segment]) {
        if (has_backward_left(v)) wanted.push_back(v);
      }
      ops.insert(ops.end(), plan_.backward_[segment].begin(), plan_.backward_[segment].end());
    }
    std::sort(ops.begin(), ops.end());
    for (OpId op : ops) {
      for (ValueId v : plan_.graph_.ops[op].inputs) wanted.push_back(v);
    }
    bool made = false;
    for (OpId op : ops) {
      if (!made && reads_missing(op)) {
        make(wanted);
        made = true;
      }
      sequence_.push_back(op);
      done_[op] = true;
    }
    if (!made) make(wanted);  // for backward ops of other segments
    for (ValueId v : wanted) wanted_[v] = false;
    for (int segment = begin; segment < end; ++segment) {
      for (ValueId v : plan_.written_[segment]) kept_[v] = kept_[v] && has_backward_left(v);
    }
  }

  bool has_backward_left(ValueId v) const {
    const auto& readers = plan_.own_backward_[v];
    return std::any_of(readers.begin(), readers.end(), [&](OpId reader) { return !done_[reader]; });
  }

  bool reads_missing(OpId op) const {
    const auto& inputs = plan_.graph_.ops[op].inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](ValueId v) { return !kept_[v]; });
  }

  // Computes the wanted values that are missing, and what they depend on, in graph order. Sets wanted_.
  void make(const std::vector<ValueId>& wanted) {
    std::vector<OpId> ops, pending;
    const auto need = [&](ValueId v) {
      if (kept_[v] || seen_[plan_.graph_.values[v].producer]) return;
      seen_[plan_.graph_.values[v].producer] = true;
      pending.push_back(plan_.graph_.values[v].producer);
    };
    for (ValueId v : wanted) {
      wanted_[v] = true;
      need(v);
    }
    while (!pending.empty()) {
      ops.push_back(pending.back());
      pending.pop_back();
      for (ValueId v : plan_.graph_.ops[ops.back()].inputs) need(v);
    }
    std::sort(ops.begin(), ops.end());
    for (OpId op : ops) seen_[op] = false;
    sequence_.insert(sequence_.end(), ops.begin(), ops.end());
    for (ValueId v : wanted) kept_[v] = true;
  }

  const Checkpoints& plan_;
  const Checkpoints::Split& split_;
  std::vector<OpId> sequence_;
  std::vector<char> kept_;    // by value: at hand; true for all that is never dropped
  std::vector<char> wanted_;  // by value, of the run at hand
  std::vector<char> done_;    // by op: backward ops that have run
  std::vector<char> seen_;    // by op, inside make()
};

std::vector<OpId> Checkpoints::sequence(const Split& split) const { return CheckpointWriter(*this, split).run(); }

std::vector<OpId> Checkpoints::flat_sequence() const {
  return sequence([](int begin, int end) {
    std::vector<int> borders(end - begin - 1);
    std::iota(borders.begin(), borders.end(), begin + 1);
    return borders;
  });
}

}  // namespace rockmate

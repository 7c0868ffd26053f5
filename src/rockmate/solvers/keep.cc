#include "rockmate/solvers/keep.h"

#include <algorithm>
#include <numeric>

#include "rockmate/schedule/schedule.h"
#include "rockmate/solvers/sequence_memory.h"
#include "rockmate/solvers/slot_memory.h"

namespace rockmate {
namespace {

constexpr int kMaxPasses = 6;

bool is_set(const std::atomic<bool>* stop) { return stop != nullptr && *stop; }

// One pass over all recomputations of a sequence. Lifetimes that grow are added to `inside_`; those that shrink (inputs that a
// removed op no longer reads) are found by the next pass.
class RemovalPass {
 public:
  RemovalPass(const TrainingGraph& graph, const std::vector<OpId>& sequence)
      : graph_(graph), sequence_(sequence), memory_(graph, sequence), inside_(memory_.inside()), writes_(graph.num_values()) {
    for (ValueId v = 0; v < graph.num_values(); ++v) {
      for (const auto& event : memory_.events(v)) {
        if (event.is_write) writes_[v].push_back(event.position);
      }
    }
  }

  Bytes peak_bytes() const { return memory_.peak_bytes(); }

  std::vector<OpId> run(Bytes budget_bytes, const std::atomic<bool>* stop) {
    removed_.assign(sequence_.size(), false);
    for (int position : candidates()) {
      if (is_set(stop)) break;
      removed_[position] = try_remove(position, budget_bytes);
    }
    std::vector<OpId> left;
    for (std::size_t i = 0; i < sequence_.size(); ++i) {
      if (!removed_[i]) left.push_back(sequence_[i]);
    }
    return left;
  }

 private:
  // Positions of recomputations, the most time per byte first.
  std::vector<int> candidates() const {
    std::vector<bool> seen(graph_.num_ops(), false);
    std::vector<int> positions;
    std::vector<double> score(sequence_.size(), 0);
    for (std::size_t i = 0; i < sequence_.size(); ++i) {
      const OpId op = sequence_[i];
      if (seen[op]) {
        Bytes bytes = 1;
        for (ValueId v : graph_.ops[op].outputs) bytes += charged_bytes(graph_.values[v]);
        score[i] = graph_.ops[op].time_us / static_cast<double>(bytes);
        positions.push_back(static_cast<int>(i));
      }
      seen[op] = true;
    }
    std::stable_sort(positions.begin(), positions.end(), [&](int a, int b) { return score[a] > score[b]; });
    return positions;
  }

  struct Extension {
    int begin;  // up to the removed position
    Bytes bytes;
  };

  bool try_remove(int position, Bytes budget_bytes) {
    const auto& outputs = graph_.ops[sequence_[position]].outputs;
    std::vector<Extension> extensions;
    bool fits = true;
    for (ValueId v : outputs) {
      const Value& value = graph_.values[v];
      if (value.retention == Retention::kUntilStepEnd || charged_bytes(value) == 0) continue;
      const auto [last_before, last_after] = last_reads(v, position);
      if (last_after < 0) continue;
      extensions.push_back({last_before + 1, value.bytes});
      inside_.add(last_before + 1, position - 1, value.bytes);
      fits = inside_.most(last_before + 1, position - 1) <= budget_bytes;
      if (!fits) break;
    }
    if (!fits) {
      for (const Extension& x : extensions) inside_.add(x.begin, position - 1, -x.bytes);
      return false;
    }
    for (ValueId v : outputs) std::erase(writes_[v], position);
    return true;
  }

  // The last read before `position` of the instance before it, and the last read of the instance written there, or -1.
  std::pair<int, int> last_reads(ValueId v, int position) const {
    const auto here = std::lower_bound(writes_[v].begin(), writes_[v].end(), position);
    const int previous = *std::prev(here);
    const int next = std::next(here) == writes_[v].end() ? static_cast<int>(sequence_.size()) : *std::next(here);
    int before = previous, after = -1;
    for (const auto& event : memory_.events(v)) {
      if (event.is_write || removed_[event.position]) continue;
      if (event.position < position) before = std::max(before, event.position);
      if (event.position > position && event.position <= next) after = event.position;
    }
    return {before, after};
  }

  const TrainingGraph& graph_;
  const std::vector<OpId>& sequence_;
  SequenceMemory memory_;
  SlotMemory inside_;
  std::vector<std::vector<int>> writes_;
  std::vector<bool> removed_;
};

}  // namespace

std::vector<OpId> keep_within(const TrainingGraph& graph, std::vector<OpId> sequence, Bytes budget_bytes,
                              const std::atomic<bool>* stop) {
  sequence = without_dead_recomputations(graph, sequence);
  for (int i = 0; i < kMaxPasses && !is_set(stop); ++i) {
    RemovalPass pass(graph, sequence);
    std::vector<OpId> fewer = without_dead_recomputations(graph, pass.run(std::max(budget_bytes, pass.peak_bytes()), stop));
    if (fewer.size() == sequence.size()) break;
    sequence = std::move(fewer);
  }
  return sequence;
}

}  // namespace rockmate

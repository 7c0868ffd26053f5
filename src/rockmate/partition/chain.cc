#include "rockmate/partition/chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rockmate/partition/cuts.h"

namespace rockmate {
namespace {

// A value this many times smaller than the largest one is never worth a cut.
constexpr Bytes kNegligibleShare = 100'000;
// Values that live over more than 1 / share of the forward pass are pinned; 0 pins none for their length.
constexpr int kShares[] = {0, 2, 3, 5, 8, 12, 20, 32};

class ChainBuilder {
 public:
  ChainBuilder(const TrainingGraph& graph, const std::vector<std::vector<OpId>>& readers, OpId num_forward)
      : graph_(graph), readers_(readers), num_forward_(num_forward) {}

  Chain build(int share, int max_blocks) {
    pin_by_rule(share);
    cut(max_blocks);
    assign_backward();
    pin_far_reads();
    collect();
    return std::move(chain_);
  }

 private:
  int num_blocks() const { return static_cast<int>(chain_.blocks.size()); }
  bool is_forward(OpId op) const { return op < num_forward_; }
  bool is_forward_value(ValueId v) const { return graph_.values[v].producer != kNone && is_forward(graph_.values[v].producer); }

  void pin_by_rule(int share) {
    Bytes largest = 0;
    for (const Value& value : graph_.values) largest = std::max(largest, charged_bytes(value));
    chain_.pinned.assign(graph_.num_values(), false);
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      if (!is_forward_value(v) || charged_bytes(graph_.values[v]) == 0) continue;
      const Value& value = graph_.values[v];
      const auto& r = readers_[v];
      const auto last_forward = std::lower_bound(r.begin(), r.end(), num_forward_);
      const OpId last = last_forward == r.begin() ? value.producer : *std::prev(last_forward);
      const bool is_long = share > 0 && static_cast<std::int64_t>(last - value.producer) * share > num_forward_;
      const bool has_side_effects = !graph_.ops[value.producer].recomputable && !r.empty();
      const bool is_negligible = last != value.producer && value.bytes < largest / kNegligibleShare;
      chain_.pinned[v] = is_long || has_side_effects || is_negligible || value.retention != Retention::kUntilLastUse;
    }
  }

  void cut(int max_blocks) {
    std::vector<Cut> cuts = group_cuts(graph_, find_cuts(graph_, chain_.pinned));
    const int stride = (static_cast<int>(cuts.size()) + max_blocks) / max_blocks;
    Block block;
    for (std::size_t i = stride - 1; i < cuts.size(); i += stride) {
      block.end = cuts[i].after + 1;
      block.output = cuts[i].value;
      chain_.blocks.push_back(block);
      block = {.begin = block.end, .end = 0, .backward = {}, .input = cuts[i].value, .output = kNone};
    }
    block.end = num_forward_;
    chain_.blocks.push_back(block);
    chain_.block_of.assign(graph_.num_ops(), num_blocks() - 1);
    for (int k = 0; k < num_blocks(); ++k) {
      for (OpId op = chain_.blocks[k].begin; op < chain_.blocks[k].end; ++op) chain_.block_of[op] = k;
    }
  }

  // Blocks in which a backward op may read the value without pinning it: its own, and for a boundary value the next one too.
  std::pair<int, int> home(ValueId v) const {
    const int k = chain_.block_of[graph_.values[v].producer];
    return {k, chain_.blocks[k].output == v ? k + 1 : k};
  }

  void assign_backward() {
    int random_limit = num_blocks() - 1;
    std::vector<OpId> free_ops;  // bound to no block by what they read
    for (OpId op = num_forward_; op < graph_.num_ops(); ++op) {
      int latest = graph_.ops[op].is_random ? random_limit : num_blocks() - 1;
      bool is_free = !graph_.ops[op].is_random;
      for (ValueId v : graph_.ops[op].inputs) {
        const Value& value = graph_.values[v];
        if (value.producer == kNone || chain_.pinned[v]) continue;
        if (is_forward(value.producer)) {
          latest = std::min(latest, home(v).second);
          is_free = false;
        } else {
          latest = std::min(latest, chain_.block_of[value.producer]);
        }
      }
      chain_.block_of[op] = latest;
      if (graph_.ops[op].is_random) random_limit = latest;
      if (is_free) free_ops.push_back(op);
    }
    for (auto op = free_ops.rbegin(); op != free_ops.rend(); ++op) delay(*op);
  }

  // An op that only works on gradients waits for its first reader when it makes more bytes than it lets go.
  void delay(OpId op) {
    int first_read = -1;
    Bytes made = 0, released = 0;
    for (ValueId v : graph_.ops[op].outputs) {
      made += charged_bytes(graph_.values[v]);
      for (OpId reader : readers_[v]) first_read = std::max(first_read, chain_.block_of[reader]);
    }
    for (ValueId v : graph_.ops[op].inputs) {
      const bool dies = readers_[v].size() == 1 && graph_.values[v].retention == Retention::kUntilLastUse;
      if (dies && !chain_.pinned[v]) released += charged_bytes(graph_.values[v]);
    }
    if (first_read >= 0 && made > released) chain_.block_of[op] = std::min(chain_.block_of[op], first_read);
  }

  void pin_far_reads() {
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      if (!is_forward_value(v) || chain_.pinned[v]) continue;
      const auto [low, high] = home(v);
      for (OpId reader : readers_[v]) {
        const int k = chain_.block_of[reader];
        if (k < low || k > high) chain_.pinned[v] = true;
      }
    }
    for (Block& block : chain_.blocks) {
      if (block.input != kNone && chain_.pinned[block.input]) block.input = kNone;
      if (block.output != kNone && chain_.pinned[block.output]) block.output = kNone;
    }
  }

  // The lowest block that reads the value; -1 when it outlives the step.
  int lowest_reader(ValueId v) const {
    if (graph_.values[v].retention == Retention::kUntilStepEnd) return -1;
    int lowest = num_blocks();
    for (OpId reader : readers_[v]) lowest = std::min(lowest, chain_.block_of[reader]);
    return lowest;
  }

  void collect() {
    const int count = num_blocks();
    for (OpId op = num_forward_; op < graph_.num_ops(); ++op) chain_.blocks[chain_.block_of[op]].backward.push_back(op);
    std::vector<Bytes> gradient_changes(count + 2, 0);  // by boundary
    std::vector<Bytes> pinned_changes(count + 1, 0);    // by block
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      const Value& value = graph_.values[v];
      const Bytes bytes = charged_bytes(value);
      if (bytes == 0) continue;
      const int lowest = lowest_reader(v);
      if (chain_.pinned[v]) {
        chain_.pinned_bytes += bytes;
        if (lowest < count) pinned_changes[std::max(lowest, 0)] += bytes;
      } else if (!is_forward_value(v)) {
        // Alive at boundaries lowest + 1 .. made, where boundary k lies after block index k - 1.
        const int made = value.producer == kNone ? count : chain_.block_of[value.producer];
        if (lowest >= made) continue;
        gradient_changes[lowest + 1] += bytes;
        gradient_changes[made + 1] -= bytes;
      }
    }
    chain_.gradient_bytes.assign(count + 1, 0);
    Bytes alive = 0;
    for (int k = 0; k <= count; ++k) chain_.gradient_bytes[k] = alive += gradient_changes[k];
    chain_.pinned_bytes_at.assign(count, 0);
    Bytes pinned = 0;
    for (int k = 0; k < count; ++k) chain_.pinned_bytes_at[k] = pinned += pinned_changes[k];
  }

  const TrainingGraph& graph_;
  const std::vector<std::vector<OpId>>& readers_;
  OpId num_forward_;
  Chain chain_;
};

// About what a plan would hold that keeps pinned values and some checkpoints and works on one block at a time.
double price(const TrainingGraph& graph, const Chain& chain, const std::vector<std::vector<OpId>>& readers, OpId num_forward) {
  std::vector<Bytes> inner(chain.blocks.size(), 0);
  Bytes boundaries = 0;
  for (ValueId v = 0; v < graph.num_values(); ++v) {
    const OpId producer = graph.values[v].producer;
    if (producer == kNone || producer >= num_forward || chain.pinned[v]) continue;
    if (!readers[v].empty() && readers[v].back() >= num_forward)
      inner[chain.block_of[producer]] += charged_bytes(graph.values[v]);
  }
  for (const Block& block : chain.blocks) {
    if (block.output != kNone) boundaries += graph.values[block.output].bytes;
  }
  const double count = static_cast<double>(chain.blocks.size());
  return static_cast<double>(chain.pinned_bytes) + static_cast<double>(*std::max_element(inner.begin(), inner.end())) +
         2 * static_cast<double>(boundaries) / std::sqrt(count);
}

}  // namespace

Chain partition_chain(const TrainingGraph& graph, int max_blocks) {
  const OpId num_forward = num_forward_ops(graph);
  const auto readers = readers_of(graph);
  Chain best;
  double lowest = std::numeric_limits<double>::infinity();
  for (int share : kShares) {
    Chain chain = ChainBuilder(graph, readers, num_forward).build(share, max_blocks);
    const double cost = price(graph, chain, readers, num_forward);
    if (cost < lowest * 0.999) {
      lowest = cost;
      best = std::move(chain);
    }
  }
  return best;
}

}  // namespace rockmate

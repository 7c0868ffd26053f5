#include "rockmate/planners/rotor.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "rockmate/planner/chain_plans.h"
#include "rockmate/planners/trials.h"

namespace rockmate {
namespace {

constexpr int kMaxBlocks = 150;
constexpr int kMaxPeriod = 12;
constexpr int kNeighbours = 4;  // simulated besides the memory that bisection finds

// One chain, all memories.
class ChainSearch {
 public:
  ChainSearch(const TrainingGraph& graph, const Chain& chain, int steps, const PlannerContext& context, Trials& trials)
      : graph_(graph),
        chain_(chain),
        classes_(classify_blocks(graph, chain)),
        steps_(steps),
        context_(context),
        trials_(trials) {
    for (const BlockProblem& problem : classes_.problems) {
      BlockOptions& keep_all = options_.emplace_back();
      keep_all.options.push_back(price_option(problem, store_all_sequence(problem.graph)));
    }
    blocks_ = rotor_blocks(graph, chain, classes_, options_);
  }

  // Within the whole range of memory, around the budget, and around the least memory: ever finer steps.
  void run(Bytes budget_bytes, Bytes plain_bytes) {
    const Bytes budget = std::max<Bytes>(budget_bytes - chain_.pinned_bytes, 1);
    const Bytes least = search(std::max<Bytes>(plain_bytes - chain_.pinned_bytes, 1), budget);
    if (context_.expired()) return;
    if (budget < plain_bytes / 2) search(2 * budget, budget);
    if (!context_.expired() && least > 0 && 2 * least < budget) search(2 * least, budget);
  }

 private:
  // Returns the least memory that the table has a way for, 0 when it has none.
  Bytes search(Bytes most_bytes, Bytes budget) {
    const RotorTable table(blocks_, most_bytes, steps_, context_.stop());
    if (context_.stopped()) return 0;
    std::vector<int> falls;  // steps of memory at which the time falls
    Micros last = std::numeric_limits<Micros>::infinity();
    for (int m = 0; m <= table.steps(); ++m) {
      if (table.time_us(m) < last) falls.push_back(m);
      last = table.time_us(m);
    }
    if (falls.empty()) return 0;
    const auto simulate = [&](int i) {
      if (i < 0 || i >= static_cast<int>(falls.size())) return Bytes{0};
      const Bytes peak = trials_.add(whole_sequence(graph_, classes_, table.backward(falls[i]))).peak_bytes;
      return peak - chain_.pinned_bytes;
    };
    int low = 0, high = static_cast<int>(falls.size());
    simulate(low);
    while (low + 1 < high && !context_.expired()) {
      const int middle = (low + high) / 2;
      (simulate(middle) <= budget ? low : high) = middle;
    }
    for (int i = low + 1; i <= low + kNeighbours && !context_.expired(); ++i) simulate(i);
    return table.bytes_of(falls.front());
  }

  const TrainingGraph& graph_;
  const Chain& chain_;
  BlockClasses classes_;
  int steps_;
  const PlannerContext& context_;
  Trials& trials_;
  std::vector<BlockOptions> options_;
  std::vector<RotorBlock> blocks_;
};

PlannerAnswer search_chains(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context, bool fine) {
  Trials trials(graph, budget_bytes);
  const Bytes plain_bytes = trials.add(store_all_sequence(graph)).peak_bytes;
  if (trials.found() || !context.progress("partition", 0)) return std::move(trials).answer();
  const Chain chain = partition_chain(graph, kMaxBlocks);
  const std::vector<int> begins = layer_begins(classify_blocks(graph, chain).class_of);
  const bool has_layers = begins.size() < chain.blocks.size();
  const int num_blocks = static_cast<int>(chain.blocks.size()), num_layers = static_cast<int>(begins.size());

  std::string note = "a chain of " + std::to_string(num_blocks) + " blocks";
  if (fine || !has_layers) {
    context.progress("blocks", 0.1);
    ChainSearch(graph, chain, context.options().memory_steps, context, trials).run(budget_bytes, plain_bytes);
  }
  if (has_layers && context.progress("layers", 0.5)) {
    const Trials::Price before = trials.best();
    const bool had_plan = trials.found();
    const Chain layers = merged_chain(chain, begins);
    ChainSearch(graph, layers, context.options().memory_steps, context, trials).run(budget_bytes, plain_bytes);
    const bool better = trials.found() && (!had_plan || trials.best().time_us < before.time_us);
    if (!fine || better) note = "a chain of " + std::to_string(num_layers) + " whole layers";
  }
  if (num_blocks == 1) note = "the graph has no chain: one block, which keeps all";
  return std::move(trials).answer(std::move(note));
}

}  // namespace

Chain merged_chain(const Chain& chain, const std::vector<int>& begins) {
  Chain merged;
  merged.pinned = chain.pinned;
  merged.pinned_bytes = chain.pinned_bytes;
  merged.gradient_bytes.push_back(chain.gradient_bytes.front());
  std::vector<int> part_of(chain.blocks.size());
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const int begin = begins[i];
    const int end = i + 1 < begins.size() ? begins[i + 1] : static_cast<int>(chain.blocks.size());
    Block block = chain.blocks[begin];
    block.end = chain.blocks[end - 1].end;
    block.output = chain.blocks[end - 1].output;
    for (int k = begin; k < end; ++k) {
      part_of[k] = static_cast<int>(i);
      if (k > begin)
        block.backward.insert(block.backward.end(), chain.blocks[k].backward.begin(), chain.blocks[k].backward.end());
    }
    std::sort(block.backward.begin(), block.backward.end());
    merged.blocks.push_back(std::move(block));
    merged.gradient_bytes.push_back(chain.gradient_bytes[end]);
    merged.pinned_bytes_at.push_back(chain.pinned_bytes_at[end - 1]);
  }
  for (int k : chain.block_of) merged.block_of.push_back(part_of[k]);
  return merged;
}

std::vector<int> layer_begins(const std::vector<int>& class_of) {
  const int count = static_cast<int>(class_of.size());
  int period = 1, first = 0, length = 0;  // of the run found: class_of[i] == class_of[i + period] in it
  for (int p = 1; p <= std::min(kMaxPeriod, count / 2); ++p) {
    for (int i = 0; i + p < count;) {
      int end = i;
      while (end + p < count && class_of[end] == class_of[end + p]) ++end;
      const int covered = (end - i + p) / p * p;
      if (end - i >= p && covered > length) {
        period = p;
        first = i;
        length = covered;
      }
      i = end + 1;
    }
  }
  std::vector<int> begins;
  for (int k = 0; k < count; ++k) {
    if (k < first || k >= first + length || (k - first) % period == 0) begins.push_back(k);
  }
  return begins;
}

PlannerAnswer rotor(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  return search_chains(graph, budget_bytes, context, true);
}

PlannerAnswer rotor_layers(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  return search_chains(graph, budget_bytes, context, false);
}

}  // namespace rockmate

#include "rockmate/solvers/stage_search.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "rockmate/solvers/checkmate_stages.h"

namespace rockmate {
namespace {

using Set = std::uint64_t;  // of managed values

constexpr int kMaxManaged = 64;
constexpr std::size_t kBeam = 1000;     // states, once some were dropped
constexpr std::size_t kCompared = 500;  // states that each one is compared with to find a better one

struct State {
  Set needed;
  Micros time_us;
  int node;  // last recomputation decided on (the earliest in time), or -1
};

struct Node {
  int next;  // the one after it in time
  int stage;
  OpId op;
};

class Search {
 public:
  Search(const BlockProblem& problem, Bytes peak_bytes, const StageSearchOptions& options)
      : problem_(problem),
        graph_(problem.graph),
        options_(options),
        max_states_(options.max_states),
        stages_(checkmate_stages(problem, options.negligible_share)),
        num_forward_(num_forward_ops(graph_)),
        peak_bytes_(peak_bytes - stages_.kept_bytes) {
    for (ValueId v = 0; v < graph_.num_values(); ++v) {
      if (stages_.managed[v] && stages_.last_needed[v] >= 0) bit_values_.push_back(v);
    }
    // Large values first: the tables of set sizes then hold similar sums.
    bit_of_.assign(graph_.num_values(), -1);
    for (std::size_t i = 0; i < bit_values_.size(); ++i) bit_of_[bit_values_[i]] = static_cast<int>(i);
  }

  StageSearchResult run() {
    if (bit_values_.size() > kMaxManaged) {
      result_.complete = result_.exact = false;
      return result_;
    }
    make_tables();
    states_ = {{0, 0, -1}};
    for (int j = static_cast<int>(stages_.stages.size()) - 1; j >= 1 && !states_.empty(); --j) {
      back_over_stage(j);
      if (!stopped()) continue;
      result_.complete = result_.exact = false;
      return result_;
    }
    keep_if([&](const State& s) { return bytes(s.needed) + stages_.stages[0].rest_bytes <= peak_bytes_; });
    collect();
    result_.exact = result_.complete && stages_.exact;
    return std::move(result_);
  }

 private:
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed); }

  Set set_of(const std::vector<ValueId>& values) const {
    Set set = 0;
    for (ValueId v : values) {
      if (bit_of_[v] >= 0) set |= Set{1} << bit_of_[v];
    }
    return set;
  }

  void make_tables() {
    for (int chunk = 0; chunk < 8; ++chunk) {
      for (int bits = 0; bits < 256; ++bits) {
        Bytes sum = 0;
        for (int i = 0; i < 8; ++i) {
          const std::size_t at = static_cast<std::size_t>(chunk * 8 + i);
          if ((bits >> i & 1) != 0 && at < bit_values_.size()) sum += charged_bytes(graph_.values[bit_values_[at]]);
        }
        sums_[chunk][bits] = sum;
      }
    }
    inputs_.resize(num_forward_);
    outputs_.resize(num_forward_);
    inside_bytes_.resize(num_forward_);
    for (OpId op = 0; op < num_forward_; ++op) {
      inputs_[op] = set_of(graph_.ops[op].inputs);
      outputs_[op] = set_of(graph_.ops[op].outputs);
      inside_bytes_[op] = graph_.ops[op].workspace_bytes;
      for (ValueId v : graph_.ops[op].outputs) {
        if (bit_of_[v] < 0) inside_bytes_[op] += charged_bytes(graph_.values[v]);
      }
    }
  }

  Bytes bytes(Set set) const {
    Bytes sum = 0;
    for (int chunk = 0; set != 0; ++chunk, set >>= 8) sum += sums_[chunk][set & 255];
    return sum;
  }

  template <typename Predicate>
  void keep_if(Predicate predicate) {
    std::erase_if(states_, [&](const State& s) { return !predicate(s); });
  }

  void back_over_stage(int j) {
    const CheckmateStage& stage = stages_.stages[j];
    const Set reads = set_of(stage.reads);
    keep_if([&](const State& s) { return bytes(s.needed) + stage.rest_bytes <= peak_bytes_; });
    for (State& state : states_) state.needed |= reads;
    keep_if([&](const State& s) { return bytes(s.needed) + stage.first_bytes <= peak_bytes_; });
    merge_equal();
    for (OpId op = num_forward_ - 1; op >= 0 && !stopped(); --op) {
      if (outputs_[op] != 0 && graph_.ops[op].recomputable) back_over_recomputation(j, op);
    }
    drop_beaten();
  }

  void back_over_recomputation(int j, OpId op) {
    const std::size_t before = states_.size();
    const Bytes room = peak_bytes_ - stages_.stages[j].before_bytes - inside_bytes_[op];
    for (std::size_t i = 0; i < before; ++i) {
      const State state = states_[i];
      if ((state.needed & outputs_[op]) == 0) continue;
      const Micros time_us = state.time_us + graph_.ops[op].time_us;
      if (time_us > options_.most_us || bytes(state.needed | outputs_[op] | inputs_[op]) > room) continue;
      nodes_.push_back({state.node, j, op});
      states_.push_back({(state.needed & ~outputs_[op]) | inputs_[op], time_us, static_cast<int>(nodes_.size()) - 1});
    }
    if (states_.size() == before) return;
    merge_equal();
    if (states_.size() > max_states_) drop_beaten();
  }

  // The cheapest of the states with the same set, in order of first appearance.
  void merge_equal() {
    std::unordered_map<Set, std::size_t> known;
    known.reserve(states_.size() * 2);
    std::size_t kept = 0;
    for (const State& state : states_) {
      const auto [found, is_new] = known.try_emplace(state.needed, kept);
      if (is_new) {
        states_[kept++] = state;
      } else if (state.time_us < states_[found->second].time_us) {
        states_[found->second] = state;
      }
    }
    states_.resize(kept);
  }

  void drop_beaten() {
    std::stable_sort(states_.begin(), states_.end(), [](const State& a, const State& b) {
      if (a.time_us != b.time_us) return a.time_us < b.time_us;
      return __builtin_popcountll(a.needed) < __builtin_popcountll(b.needed);
    });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const Set needed = states_[i].needed;
      bool beaten = false;
      for (std::size_t k = 0; k < std::min(kept, kCompared) && !beaten; ++k) beaten = (states_[k].needed & ~needed) == 0;
      if (!beaten) states_[kept++] = states_[i];
    }
    states_.resize(kept);
    if (kept > max_states_) drop_unpromising();
  }

  // Keeps, in each of many ranges of bytes, the cheapest. What is left is a beam, and a narrow one does: the optimum is lost.
  void drop_unpromising() {
    result_.complete = false;
    max_states_ = std::min(max_states_, kBeam);
    std::vector<std::pair<Bytes, std::size_t>> by_bytes;
    for (std::size_t i = 0; i < states_.size(); ++i) by_bytes.emplace_back(bytes(states_[i].needed), i);
    std::stable_sort(by_bytes.begin(), by_bytes.end());
    std::vector<State> kept;
    const std::size_t ranges = 64, share = std::max<std::size_t>(max_states_ / 2 / ranges, 1);
    for (std::size_t r = 0; r < ranges; ++r) {
      std::vector<std::size_t> range;
      for (std::size_t i = by_bytes.size() * r / ranges; i < by_bytes.size() * (r + 1) / ranges; ++i) {
        range.push_back(by_bytes[i].second);
      }
      std::sort(range.begin(), range.end());  // states are in order of time
      for (std::size_t i = 0; i < std::min(range.size(), share); ++i) kept.push_back(states_[range[i]]);
    }
    states_ = std::move(kept);
  }

  void collect() {
    const Set free = problem_.output != kNone && bit_of_[problem_.output] >= 0 ? Set{1} << bit_of_[problem_.output] : 0;
    std::vector<std::pair<Bytes, const State*>> ends;
    for (const State& state : states_) ends.emplace_back(bytes(state.needed & ~free) + stages_.kept_bytes, &state);
    std::stable_sort(ends.begin(), ends.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second->time_us < b.second->time_us;
    });
    Micros best_us = std::numeric_limits<Micros>::infinity();
    for (const auto& [saved_bytes, state] : ends) {
      if (state->time_us >= best_us) continue;
      best_us = state->time_us;
      result_.found.push_back({saved_bytes, state->time_us, sequence_of(*state)});
    }
  }

  std::vector<OpId> sequence_of(const State& state) const {
    std::vector<OpId> sequence;
    for (OpId op = 0; op < num_forward_; ++op) sequence.push_back(op);
    int node = state.node;
    for (int j = 0; j < static_cast<int>(stages_.stages.size()); ++j) {
      for (; node >= 0 && nodes_[node].stage == j; node = nodes_[node].next) sequence.push_back(nodes_[node].op);
      for (OpId op = stages_.stages[j].first; op < stages_.stages[j].end; ++op) sequence.push_back(op);
    }
    return sequence;
  }

  const BlockProblem& problem_;
  const TrainingGraph& graph_;
  const StageSearchOptions& options_;
  std::size_t max_states_;
  CheckmateStages stages_;
  OpId num_forward_;
  Bytes peak_bytes_;
  std::vector<ValueId> bit_values_;
  std::vector<int> bit_of_;
  Bytes sums_[8][256] = {};
  std::vector<Set> inputs_, outputs_;
  std::vector<Bytes> inside_bytes_;  // workspace and outputs that are no bits
  std::vector<State> states_;
  std::vector<Node> nodes_;
  StageSearchResult result_;
};

}  // namespace

StageSearchResult stage_search(const BlockProblem& problem, Bytes peak_bytes, const StageSearchOptions& options) {
  return Search(problem, peak_bytes, options).run();
}

}  // namespace rockmate

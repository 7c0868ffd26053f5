#include "rockmate/solvers/block_options.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "rockmate/schedule/schedule.h"
#include "rockmate/solvers/checkmate_stages.h"
#include "rockmate/solvers/evict.h"
#include "rockmate/solvers/rk_checkmate.h"
#include "rockmate/solvers/sequence_memory.h"
#include "rockmate/solvers/stage_search.h"

namespace rockmate {
namespace {

constexpr int kBisections = 6;
constexpr int kFiner = 3;  // where the search is cheap it takes this many times more levels than the grid
constexpr Bytes kNegligibleShare = 1000;

// Where the time is short, each block gets its part of this share of it, half for programs and half for searches.
constexpr double kTimeShare = 0.8;
constexpr double kSearches = 14;           // of a block, usually
constexpr double kStatesPerSecond = 3e5;   // of a search in a large block
constexpr std::size_t kLeastStates = 500;  // more than the least that answers a small block

// The forward ops that the wanted values depend on, ascending.
std::vector<OpId> ops_for(const TrainingGraph& graph, OpId num_forward, std::vector<bool> wanted) {
  std::vector<OpId> ops;
  for (OpId op = num_forward - 1; op >= 0; --op) {
    const auto& outputs = graph.ops[op].outputs;
    if (std::none_of(outputs.begin(), outputs.end(), [&](ValueId v) { return wanted[v]; })) continue;
    ops.push_back(op);
    for (ValueId v : graph.ops[op].inputs) wanted[v] = true;
  }
  std::reverse(ops.begin(), ops.end());
  return ops;
}

// The block with an op between forward and backward that holds `bytes`: bounding its peak by p bounds what is saved by p -
// bytes.
TrainingGraph with_gap(const TrainingGraph& graph, OpId num_forward, Bytes bytes) {
  TrainingGraph wide = graph;
  Op gap;
  gap.recomputable = false;
  gap.workspace_bytes = bytes;
  wide.ops.insert(wide.ops.begin() + num_forward, gap);
  for (Value& value : wide.values) value.producer += value.producer >= num_forward ? 1 : 0;
  return wide;
}

class OptionSearch {
 public:
  OptionSearch(const BlockProblem& problem, const BlockSettings& settings)
      : problem_(problem), settings_(settings), num_forward_(num_forward_ops(problem.graph)) {}

  BlockOptions run() {
    add(store_all_sequence(problem_.graph));
    if (num_forward_ < problem_.graph.num_ops()) {
      set_levels();
      evict_options();
      solve_grid();
    }
    drop_beaten();
    return std::move(result_);
  }

 private:
  std::vector<BlockOption>& pool() { return result_.options; }

  void add(std::vector<OpId> sequence) {
    BlockOption option = price_option(problem_, without_dead_recomputations(problem_.graph, sequence));
    for (const BlockOption& other : pool()) {
      if (beats(other, option)) return;
    }
    pool().push_back(std::move(option));
  }

  static bool beats(const BlockOption& a, const BlockOption& b) {
    return a.saved_bytes <= b.saved_bytes && a.forward_peak_bytes <= b.forward_peak_bytes &&
           a.backward_peak_bytes <= b.backward_peak_bytes && a.recompute_us <= b.recompute_us && a.forward_us <= b.forward_us &&
           a.lone_us <= b.lone_us;
  }

  void drop_beaten() {
    std::vector<BlockOption> kept;
    for (std::size_t i = 0; i < pool().size(); ++i) {
      bool beaten = false;
      for (std::size_t j = 0; j < pool().size() && !beaten; ++j) {
        beaten = i != j && beats(pool()[j], pool()[i]) && (j < i || !beats(pool()[i], pool()[j]));
      }
      if (!beaten) kept.push_back(pool()[i]);
    }
    pool() = std::move(kept);
  }

  void set_levels() {
    const BlockOption& all = pool().front();
    const CheckmateStages stages = checkmate_stages(problem_, 0);
    num_binaries_ = stages.num_recomputations(problem_.graph);
    Bytes least = 0;
    for (const CheckmateStage& stage : stages.stages) {
      Bytes reads = 0;
      for (ValueId v : stage.reads) reads += problem_.graph.values[v].bytes;
      least = std::max({least, stage.first_bytes + reads, stage.rest_bytes});
    }
    spread(all.backward_peak_bytes, std::min(least + stages.kept_bytes, all.backward_peak_bytes), settings_.peak_levels,
           peaks_);
    spread(all.saved_bytes, 0, settings_.save_levels, saves_);
    spread(all.saved_bytes, 0, kFiner * (settings_.save_levels - 1) + 1, fine_saves_);
  }

  static void spread(Bytes high, Bytes low, int count, std::vector<Bytes>& levels) {
    for (int i = 0; i < count; ++i) levels.push_back(high - (high - low) * i / std::max(count - 1, 1));
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  }

  void evict_options() {
    const int gaps = settings_.save_levels == 1 ? 1 : settings_.peak_levels;
    for (int i = 0; i < gaps; ++i) {
      const Bytes gap_bytes = gaps == 1 ? 0 : peaks_.front() * i / (gaps - 1);
      const TrainingGraph wide = with_gap(problem_.graph, num_forward_, gap_bytes);
      evict(wide, store_all_sequence(wide), 0, [&](const std::vector<OpId>& sequence, Bytes) {
        std::vector<OpId> narrow;
        for (OpId op : sequence) {
          if (op != num_forward_) narrow.push_back(op > num_forward_ ? op - 1 : op);
        }
        add(std::move(narrow));
        return !stopped();
      });
    }
  }

  bool stopped() const { return settings_.stop != nullptr && settings_.stop->load(std::memory_order_relaxed); }

  struct Solved {
    Bytes save_bytes, peak_bytes;
    Micros bound_us;  // infinite when infeasible
  };

  void solve_grid() {
    Bytes lowest = std::numeric_limits<Bytes>::max();  // feasible peak
    bool is_complete = true;
    for (std::size_t i = 0; i < peaks_.size(); ++i) {
      const bool is_asked = i % kFiner == 0;
      if (is_asked) {
        if (!solve_peak(peaks_[i], is_complete)) break;
        lowest = peaks_[i];
        count_pairs(settings_.save_levels);
      } else if (is_complete) {
        search(peaks_[i], kNegligibleShare, settings_.max_states / 10);
      }
    }
    if (lowest == std::numeric_limits<Bytes>::max()) return;
    // The least peak of all decides the least budget: closer than the grid.
    Bytes infeasible = peaks_.back() - 1;
    for (Bytes peak : peaks_) infeasible = peak < lowest ? std::max(infeasible, peak) : infeasible;
    for (int i = 0; i < kBisections && infeasible + 1 < lowest; ++i) {
      const Bytes middle = infeasible + (lowest - infeasible) / 2;
      (solve_peak(middle, is_complete) ? lowest : infeasible) = middle;
    }
  }

  void count_pairs(int pairs) {
    if (settings_.pairs_done != nullptr) settings_.pairs_done->fetch_add(pairs, std::memory_order_relaxed);
  }

  // All save levels at one peak; false when nothing fits.
  bool solve_peak(Bytes peak, bool& is_complete) {
    if (stopped()) {
      result_.complete = false;
      return false;
    }
    is_complete = search(peak, kNegligibleShare, settings_.max_states);
    if (is_complete) search(peak, 0, settings_.max_states / 4);  // small values too, as far as that goes
    if (is_complete) return best_within(saves_.front(), peak) != nullptr;
    for (Bytes save : saves_) {
      const bool is_allowed = num_binaries_ <= settings_.max_program_binaries && result_.num_programs < settings_.max_programs;
      if (is_allowed && !stopped() && !is_answered(save, peak)) solve_pair(save, peak);
    }
    return best_within(saves_.front(), peak) != nullptr;
  }

  bool search(Bytes peak, Bytes negligible_share, std::size_t max_states) {
    StageSearchOptions how;
    how.negligible_share = negligible_share;
    how.max_states = max_states;
    how.stop = settings_.stop;
    StageSearchResult found = stage_search(problem_, peak, how);
    add_found(found);
    return found.complete;
  }

  // The fastest at each save level.
  void add_found(StageSearchResult& result) {
    std::size_t last = result.found.size();
    for (Bytes save : fine_saves_) {
      std::size_t best = 0;
      while (best < result.found.size() && result.found[best].saved_bytes <= save) ++best;
      if (best == 0 || best - 1 == last) continue;
      last = best - 1;
      add(result.found[last].sequence);
    }
    if (!result.found.empty() && last != 0) add(result.found.front().sequence);
  }

  const BlockOption* best_within(Bytes save, Bytes peak) {
    const BlockOption* best = nullptr;
    for (const BlockOption& option : pool()) {
      if (option.saved_bytes > save || option.backward_peak_bytes > peak) continue;
      if (best == nullptr || option.recompute_us < best->recompute_us) best = &option;
    }
    return best;
  }

  bool is_answered(Bytes save, Bytes peak) {
    Micros bound_us = 0;
    for (const Solved& solved : solved_) {
      if (solved.save_bytes >= save && solved.peak_bytes >= peak) bound_us = std::max(bound_us, solved.bound_us);
    }
    if (bound_us == std::numeric_limits<Micros>::infinity()) return true;
    const BlockOption* best = best_within(save, peak);
    return best != nullptr && best->recompute_us <= bound_us * (1 + settings_.mip_gap) + 1e-9;
  }

  void solve_pair(Bytes save, Bytes peak) {
    const BlockOption* start = best_within(save, peak);
    CheckmateOptions how;
    how.time_limit_s = settings_.time_limit_s;
    how.relative_gap = settings_.mip_gap;
    how.stop = settings_.stop;
    if (start != nullptr) how.start = &start->sequence;
    CheckmateResult found = rk_checkmate(problem_, save, peak, how);
    ++result_.num_programs;
    if (found.status == ilp::Status::kInfeasible) {
      solved_.push_back({save, peak, start == nullptr ? std::numeric_limits<Micros>::infinity() : start->recompute_us});
      return;
    }
    if (!found.sequence.empty()) add(std::move(found.sequence));
    // A program that ran out of nodes is as good as answered: smaller budgets are tried on their own.
    Micros bound_us = found.bound_us;
    const BlockOption* best = best_within(save, peak);
    if (found.status != ilp::Status::kOptimal && best != nullptr) bound_us = std::max(bound_us, best->recompute_us * 0.98);
    solved_.push_back({save, peak, bound_us});
  }

  const BlockProblem& problem_;
  const BlockSettings& settings_;
  OpId num_forward_;
  int num_binaries_ = 0;
  BlockOptions result_;
  std::vector<Bytes> saves_, fine_saves_;
  std::vector<Bytes> peaks_;  // every kFiner-th is of the grid
  std::vector<Solved> solved_;
};

}  // namespace

BlockOption price_option(const BlockProblem& problem, std::vector<OpId> sequence) {
  const TrainingGraph& graph = problem.graph;
  const OpId num_forward = num_forward_ops(graph);
  const SequenceMemory memory(graph, sequence);
  BlockOption option;
  option.num_forward = num_forward;
  option.forward_peak_bytes = memory.max_inside(0, num_forward);
  option.backward_peak_bytes = memory.max_inside(num_forward, static_cast<int>(sequence.size()));
  std::vector<bool> wanted(graph.num_values(), false);
  for (OpId op = 0; op < num_forward; ++op) {
    for (ValueId v : graph.ops[op].outputs) {
      if (v == problem.output) continue;
      const auto events = memory.events(v);
      const bool is_saved = events.size() > 1 &&
                            std::any_of(events.begin(), events.end(), [&](const auto& e) { return e.position >= num_forward; });
      if (!is_saved) continue;
      const auto first = std::find_if(events.begin(), events.end(), [&](const auto& e) { return e.position >= num_forward; });
      if (first->is_write) continue;
      wanted[v] = true;
      option.saved_bytes += charged_bytes(graph.values[v]);
    }
  }
  option.lone_ops = ops_for(graph, num_forward, wanted);
  if (problem.output != kNone) wanted[problem.output] = true;
  option.forward_ops = ops_for(graph, num_forward, wanted);
  option.lone_us = sequence_time_us(graph, option.lone_ops);
  option.forward_us = sequence_time_us(graph, option.forward_ops);
  for (std::size_t i = num_forward; i < sequence.size(); ++i) {
    if (sequence[i] < num_forward) option.recompute_us += graph.ops[sequence[i]].time_us;
  }
  option.sequence = std::move(sequence);
  return option;
}

BlockOptions block_options(const BlockProblem& problem, const BlockSettings& settings) {
  return OptionSearch(problem, settings).run();
}

bool fit_to_time(double seconds, int num_blocks, BlockSettings& settings) {
  const BlockSettings usual = settings;
  const double each_s = kTimeShare / 2 * std::max(seconds, 0.0) / std::max(num_blocks, 1);
  settings.time_limit_s = std::min(settings.time_limit_s, each_s / settings.max_programs);
  const double states = each_s / kSearches * kStatesPerSecond;
  settings.max_states = states < kLeastStates ? kLeastStates : std::min(settings.max_states, static_cast<std::size_t>(states));
  return settings.time_limit_s < usual.time_limit_s || settings.max_states < usual.max_states;
}

}  // namespace rockmate

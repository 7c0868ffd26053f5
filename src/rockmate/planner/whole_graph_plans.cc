#include "rockmate/planner/whole_graph_plans.h"

#include <algorithm>

#include "rockmate/planner/background.h"
#include "rockmate/planner/descents.h"
#include "rockmate/schedule/schedule.h"
#include "rockmate/solvers/evict.h"
#include "rockmate/solvers/keep.h"
#include "rockmate/solvers/sequence_memory.h"

namespace rockmate {
namespace {

constexpr double kHopeless = 1.3;   // times slower than a plan at hand: the descent ends
constexpr int kLooks = 100;         // times on the way down that this is looked at
constexpr std::size_t kLowest = 8;  // plans: at last a descent from each of them

class WholeGraph {
 public:
  WholeGraph(const TrainingGraph& graph, const PlannerOptions& options, StageState& state, Frontier& frontier)
      : graph_(graph),
        points_(points_for(graph, options)),
        threads_(options.threads),
        focus_bytes_(options.focus_bytes),
        state_(state),
        frontier_(frontier) {}

  void run() {
    state_.total = 3 * points_;
    store_all_peak_ = frontier_.all().rbegin()->first;
    const std::vector<OpId> plain = store_all_sequence(graph_);
    descend_from({&plain, &frontier_.all().begin()->second.sequence});
    state_.done = 2 * points_;
    improve_levels();
    if (!state_.stop) descend_lowest();
    // At last and never below the least peak, which must not depend on the focus: what is named as the least budget has to be
    // met when that is asked about.
    if (focus_bytes_ >= frontier_.all().begin()->first && !state_.stop) improve_focus();
  }

 private:
  // From each of the starts one descent, all against the plans at hand before: what comes out is the same on any number of
  // threads.
  void descend_from(const std::vector<const std::vector<OpId>*>& starts) {
    std::vector<std::vector<std::vector<OpId>>> found(starts.size());
    run_parallel(static_cast<int>(starts.size()), threads_, [&](int i) { found[i] = levels_below(*starts[i]); });
    for (auto& sequences : found) {
      for (std::vector<OpId>& sequence : sequences) frontier_.add(std::move(sequence), "evict");
    }
  }

  // One descent as far as it goes: the plan at each level of the curve.
  std::vector<std::vector<OpId>> levels_below(const std::vector<OpId>& start) const {
    const Bytes step = std::max<Bytes>(store_all_peak_ / points_, 1);
    Bytes next = store_all_peak_, next_look = store_all_peak_;
    bool is_beaten = false;
    std::vector<std::vector<OpId>> found;
    const auto keep = [&](const std::vector<OpId>& sequence, Bytes peak_bytes) {
      found.push_back(keep_within(graph_, sequence, peak_bytes, &state_.stop));
    };
    const std::vector<OpId> last = evict(graph_, start, 0, [&](const std::vector<OpId>& sequence, Bytes peak_bytes) {
      if (peak_bytes <= next) {
        keep(sequence, peak_bytes);
        next = peak_bytes - step;
      }
      if (peak_bytes <= next_look) {
        next_look = peak_bytes - store_all_peak_ / kLooks;
        const Candidate* known = frontier_.at(peak_bytes);
        is_beaten = known != nullptr && sequence_time_us(graph_, sequence) > kHopeless * known->time_us;
      }
      return !state_.stop && !is_beaten;
    });
    if (!state_.stop && !is_beaten) keep(last, 0);
    return found;
  }

  void improve_levels() {
    const Bytes least = frontier_.all().begin()->first;
    for (int i = 1; i <= points_ && !state_.stop; ++i) {
      improve(store_all_peak_ - (store_all_peak_ - least) * i / points_);
      ++state_.done;
    }
  }

  // Where a descent ends depends on where it begins: one from each of the lowest few plans.
  void descend_lowest() {
    if (graph_.num_ops() > kMaxOpsOfDescents) return;
    std::vector<const std::vector<OpId>*> starts;
    for (auto plan = frontier_.all().begin(); plan != frontier_.all().end() && starts.size() < kLowest; ++plan) {
      starts.push_back(&plan->second.sequence);
    }
    descend_from(starts);
  }

  void improve(Bytes budget) {
    fill(budget);
    const Candidate* faster = frontier_.above(budget);
    if (faster == nullptr || graph_.num_ops() > kMaxOpsOfDescents) return;
    frontier_.add(descent(graph_, faster->sequence, budget, &state_.stop), planner_below(*faster));
  }

  // The budget that is asked about gets many descents.
  void improve_focus() {
    fill(focus_bytes_);
    std::vector<const std::vector<OpId>*> starts;
    for (auto next = frontier_.all().upper_bound(focus_bytes_); next != frontier_.all().end(); ++next) {
      starts.push_back(&next->second.sequence);
    }
    if (starts.empty()) return;
    const std::string planner = planner_below(*frontier_.above(focus_bytes_));
    for (std::vector<OpId>& sequence : descents(graph_, starts, focus_bytes_, threads_, state_.stop)) {
      if (!sequence.empty()) frontier_.add(std::move(sequence), planner);
    }
  }

  // The plan within the budget, with the room that it leaves used.
  void fill(Bytes budget) {
    if (const Candidate* within = frontier_.at(budget)) {
      frontier_.add(keep_within(graph_, within->sequence, budget, &state_.stop), within->planner);
    }
  }

  static std::string planner_below(const Candidate& faster) { return faster.planner == "store-all" ? "evict" : faster.planner; }

  const TrainingGraph& graph_;
  int points_, threads_;
  Bytes focus_bytes_;
  StageState& state_;
  Frontier& frontier_;
  Bytes store_all_peak_ = 0;
};

}  // namespace

void add_whole_graph_plans(const TrainingGraph& graph, const PlannerOptions& options, StageState& state, Frontier& frontier) {
  WholeGraph(graph, options, state, frontier).run();
}

}  // namespace rockmate

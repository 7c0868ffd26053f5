#include "rockmate/planners/auto.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "rockmate/planner/background.h"
#include "rockmate/planner/descents.h"
#include "rockmate/planner/judge.h"
#include "rockmate/planner/ruin_recreate.h"
#include "rockmate/planners/fastsa.h"
#include "rockmate/planners/lower_bound.h"
#include "rockmate/planners/rockmate.h"
#include "rockmate/solvers/anneal.h"
#include "rockmate/solvers/polish.h"

namespace rockmate {
namespace {

constexpr double kOthersSeconds = 0.7;   // for each of the other planners
constexpr double kCurveShare = 0.6;      // of the time limit, at most, for the curve
constexpr double kFar = 0.1;             // of the step: hiremate is asked for a start too ...
constexpr double kHiremateShare = 0.25;  // ... and gets so much of the time left, but no more than polishing
constexpr int kMaxStarts = 3;
constexpr int kSmall = 300;                // ops
constexpr int kMaxAnnealed = 20'000;       // ops; the time of a trial grows with the length of the sequence
constexpr int kMaxBeside = 4000;           // ops: fastsa is run beside the rest
constexpr double kAnnealShare = 0.8;       // of the time for polishing ...
constexpr double kAnnealShareAbove = 0.5;  // ... where nothing meets the budget yet
constexpr double kShort = 10;              // seconds: under such a limit the lower bound must not take a second
constexpr double kMostAnnealed = 60;       // seconds
constexpr std::int64_t kRunTrials = 1500;  // of the first run, times ops
constexpr std::int64_t kLeastTrials = 500'000;
constexpr double kLeastRun = 0.5;                     // of the run before: no shorter one is begun
constexpr double kDescentShare = 0.7;                 // of the time left, at most ...
constexpr double kNamingShare = 0.15;                 // ... where nothing can meet the budget: it has to do for one that is met
constexpr double kLastShare = 0.1;                    // of the time left, for the other planners after polishing
constexpr std::int64_t kDescentTrials = 400'000'000;  // of each budget, times ops
constexpr int kDescentSteps = 5;                      // budgets tried by annealing towards the least peak
constexpr double kHeats[] = {1, 0.02, 0.2, 0.004};

class Auto {
 public:
  Auto(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context)
      : graph_(graph),
        budget_bytes_(budget_bytes),
        context_(context),
        bound_us_(context.seconds_left() < kShort ? quick_lower_bound_us(graph, budget_bytes)
                                                  : lower_bound_us(graph, budget_bytes)),
        plain_(*judged_plan(graph, store_all_sequence(graph), "store-all")),
        lowest_(plain_) {}

  ~Auto() { fastsa_stop_ = true; }

  PlannerAnswer run() {
    add(plain_);
    const bool is_small_enough = graph_.num_ops() <= kMaxBeside && std::isfinite(bound_us_);
    if (!is_done() && is_small_enough && threads() > 1) begin_fastsa();
    if (!is_done()) add_curve();
    if (!is_done() && is_far_from_bound()) add_hiremate();
    if (!is_done() && is_loose()) anneal_plain();
    take_fastsa();
    least_peak_bytes_ = least_peak();
    if (!is_done() && !fits(starts_.front())) descend();
    take_fastsa();
    const bool needs_others = !fits(starts_.front());
    if (!is_done() && needs_others) add_others();
    if (!is_done()) polish_starts();
    if (!is_done() && !needs_others && add_others()) polish_starts();
    if (!is_done() && is_small_enough) begin_fastsa();  // with one thread
    await_fastsa();
    least_peak_bytes_ = std::min(least_peak_bytes_, least_peak());
    PlannerAnswer answer;
    answer.note = note_;
    answer.least_peak_bytes = least_peak_bytes_;
    answer.bound_us = std::isfinite(bound_us_) ? bound_us_ : 0;
    if (fits(starts_.front())) answer.sequence = starts_.front().sequence;
    return answer;
  }

 private:
  // Within the budget the faster one comes first, above it the one with the lower peak.
  bool is_better(const Plan& a, const Plan& b) const {
    const bool fits_a = a.peak_bytes <= budget_bytes_, fits_b = b.peak_bytes <= budget_bytes_;
    if (fits_a != fits_b) return fits_a;
    if (fits_a) return a.time_us != b.time_us ? a.time_us < b.time_us : a.peak_bytes < b.peak_bytes;
    return a.peak_bytes != b.peak_bytes ? a.peak_bytes < b.peak_bytes : a.time_us < b.time_us;
  }

  bool fits(const Plan& plan) const { return plan.peak_bytes <= budget_bytes_; }

  // No chain, or a small graph: the order of ops decides, and annealing from the plain order is what finds it.
  bool is_loose() const { return !has_chain_ || graph_.num_ops() < kSmall; }

  // What is named must be found again by whoever asks for it: what a search for this very budget ends at does not count, unless
  // it is within.
  Bytes least_peak() const {
    Bytes least = std::min(plain_.peak_bytes, descended_bytes_);
    if (curve_least_bytes_ > 0) least = std::min(least, curve_least_bytes_);
    for (const Plan& plan : starts_) {
      if (fits(plan)) least = std::min(least, plan.peak_bytes);
    }
    return least;
  }

  // True when it is the best so far.
  bool add(const std::vector<OpId>& sequence) {
    std::optional<Plan> plan = judged_plan(graph_, sequence, "auto");
    return plan && add(std::move(*plan));
  }

  bool add(Plan plan) {
    const std::lock_guard lock(mutex_);
    const auto place = std::find_if(starts_.begin(), starts_.end(), [&](const Plan& other) { return !is_better(other, plan); });
    const bool is_first = place == starts_.begin();
    if (place != starts_.end() && place->peak_bytes == plan.peak_bytes && place->time_us == plan.time_us) return false;
    starts_.insert(place, std::move(plan));
    if (starts_.size() > kMaxStarts) starts_.pop_back();
    return is_first;
  }

  bool is_done() const {
    if (stop_ || context_.expired()) return true;
    const Plan& best = starts_.front();
    return fits(best) && best.time_us - plain_.time_us <= bound_us_ * (1 + kOptimalGap) + 1e-9 * plain_.time_us;
  }

  // fastsa's own run, in a thread of its own: what it finds when it is asked, this planner finds too.
  void begin_fastsa() {
    if (fastsa_.joinable()) return;
    fastsa_ = std::jthread([this] {
      PlannerOptions options = context_.options();
      options.on_progress = {};
      options.threads = 1;
      options.time_limit_s = std::max(context_.seconds_left(), 1e-3);
      try {
        const PlannerAnswer answer = fastsa(graph_, budget_bytes_, PlannerContext(options, &fastsa_stop_));
        fastsa_plan_ = answer.sequence.empty() ? std::nullopt : judged_plan(graph_, answer.sequence, "auto");
      } catch (...) {
        fastsa_error_ = std::current_exception();
      }
      fastsa_ended_ = true;
    });
  }

  bool fastsa_runs() const { return fastsa_.joinable() && !fastsa_ended_; }

  void take_fastsa() {
    if (!fastsa_ended_) return;
    if (fastsa_error_) std::rethrow_exception(std::exchange(fastsa_error_, nullptr));
    if (fastsa_plan_) add(*std::exchange(fastsa_plan_, std::nullopt));
  }

  void await_fastsa() {
    if (!fastsa_.joinable()) return;
    fastsa_stop_ = is_done();
    run_watched([this] { fastsa_.join(); },
                [this] {
                  if (is_done() || !context_.progress("anneal", 1)) fastsa_stop_ = true;
                });
    take_fastsa();
  }

  // Of the rest: fastsa has one.
  int threads() const { return std::max(num_threads(context_.options().threads) - (fastsa_runs() ? 1 : 0), 1); }

  void add_curve() {
    PlannerOptions options = focused(context_.options(), budget_bytes_);
    options.threads = threads();
    options.time_limit_s = std::max(context_.seconds_left() * kCurveShare, 1e-3);
    try {
      const PlanCurve curve = plan_curve(graph_, options);
      note_ = curve.note;
      has_chain_ = curve.has_chain;
      curve_least_bytes_ = curve.min_budget_bytes();
      const Plan* within = curve.at(budget_bytes_);
      lowest_ = curve.plans.front();
      add(within != nullptr ? *within : curve.plans.front());
      if (within == nullptr) within = &curve.plans.front();
      if (within + 1 <= &curve.plans.back()) above_ = *(within + 1);
    } catch (const Interrupted&) {
      stop_ = true;
    }
  }

  bool is_far_from_bound() const {
    const Plan& best = starts_.front();
    return has_chain_ && fits(best) && best.time_us - plain_.time_us - bound_us_ > kFar * best.time_us;
  }

  // Near the least budget a recursive partition can have a better start than any along the chain.
  void add_hiremate() {
    const double seconds = std::min(context_.seconds_left() * kHiremateShare, polish_seconds());
    run_all("hiremate", {[this, seconds] { add_planner(find_planner("hiremate"), seconds); }});
  }

  // True when one of them has the best so far.
  bool add_others() {
    std::atomic<bool> improved{false};
    std::vector<std::function<void()>> tasks;
    for (const PlannerEntry& planner : planners()) {
      if (!planner.is_quick) continue;
      tasks.push_back([this, &planner, &improved] {
        const double limit = graph_.num_ops() < kSmall ? 3 * kOthersSeconds : kOthersSeconds;
        if (add_planner(planner, std::min(limit, context_.seconds_left() / 8))) improved = true;
      });
    }
    run_all("other planners", tasks);
    return improved;
  }

  // What another planner finds within the budget; true when it is the best so far.
  bool add_planner(const PlannerEntry& planner, double seconds) {
    PlannerOptions options = context_.options();
    options.on_progress = {};
    options.threads = 1;
    options.time_limit_s = std::max(seconds, 1e-3);
    const PlannerAnswer answer = ask(planner, graph_, budget_bytes_, PlannerContext(options, &stop_));
    if (answer.sequence.empty()) return false;
    std::optional<Plan> plan = judged_plan(graph_, answer.sequence, "auto");
    return plan && fits(*plan) && add(std::move(*plan));
  }

  // From the plain order straight to the budget, in whatever order of ops: what no plan along a chain, and no descent that
  // keeps the order, comes to.
  void anneal_plain() {
    const double share = fits(starts_.front()) ? kAnnealShare : kAnnealShareAbove;
    const double seconds = std::min(polish_seconds() * share, kMostAnnealed);
    if (graph_.num_ops() > kMaxAnnealed || seconds <= 0 || !std::isfinite(bound_us_)) return;
    const PlannerContext time = context_.within(seconds);
    std::vector<std::function<void()>> tasks;
    for (int i = 0; i < threads(); ++i) {
      tasks.push_back([&, i] { anneal_restarts(static_cast<std::uint64_t>(2 + i), time); });
    }
    run_all("anneal", tasks);
  }

  // Run after run, every second one twice as long: where a run ends is luck more than a matter of its length.
  void anneal_restarts(std::uint64_t seed, const PlannerContext& time) {
    double longest = 0;
    for (int run = 0; !stop_ && time.seconds_left() > kLeastRun * longest; ++run) {
      const double before = time.seconds_left();
      AnnealOptions options;
      options.budget_bytes = budget_bytes_;
      options.seconds = std::max(before, 1e-3);
      options.max_trials = std::max(kRunTrials * graph_.num_ops(), kLeastTrials) << std::min(run / 2, 20);
      options.seed = seed + 64 * static_cast<std::uint64_t>(run);
      options.stop = &stop_;
      add(anneal(graph_, plain_.sequence, options).sequence);
      longest = before - time.seconds_left();
    }
  }

  // How low the peak can be brought at all. Neither the starts nor the amount of work depend on the budget, and time cuts it
  // short only as a last resort, so that the least budget named is met when asked. Ends where the budget is met.
  void descend() {
    const Bytes floor_bytes = peak_floor(graph_);
    const double share = std::isfinite(bound_us_) ? kDescentShare : kNamingShare;
    const PlannerContext time = context_.within(share * context_.seconds_left());
    std::vector<std::function<void()>> tasks;
    if (graph_.num_ops() <= kMaxAnnealed) {
      for (std::uint64_t seed : {4, 5}) tasks.push_back([&, seed] { annealed_descent(floor_bytes, seed, time); });
    }
    for (int i = 0; i < 4; ++i) {
      tasks.push_back([&, i] {
        PolishOptions options;
        options.budget_bytes = floor_bytes;
        options.seconds = std::max(time.seconds_left(), 1e-3);
        options.max_rounds = std::clamp<std::int64_t>(4'000'000 / graph_.num_ops(), 500, 40'000);
        options.seed = static_cast<std::uint64_t>(i);
        options.heat = 0.3;
        options.gradual = i % 2 == 0;
        options.stop = &stop_;
        add_descended(polish(graph_, i < 2 ? plain_.sequence : lowest_.sequence, options).sequence);
      });
    }
    run_all("least budget", tasks);
  }

  void add_descended(const std::vector<OpId>& sequence) {
    std::optional<Plan> plan = judged_plan(graph_, sequence, "auto");
    if (!plan) return;
    {
      const std::lock_guard lock(mutex_);
      descended_bytes_ = std::min(descended_bytes_, plan->peak_bytes);
    }
    add(std::move(*plan));
  }

  // Anneals towards budgets between what was reached and what was not.
  void annealed_descent(Bytes floor_bytes, std::uint64_t seed, const PlannerContext& time) {
    Bytes reached = lowest_.peak_bytes, missed = floor_bytes;
    for (int step = 0; step < kDescentSteps && missed < reached && reached > budget_bytes_ && !stop_; ++step) {
      AnnealOptions options;
      options.budget_bytes = missed + (reached - missed) / 4 * 3;
      options.seconds = std::max(time.seconds_left(), 1e-3);
      options.max_trials = std::clamp<std::int64_t>(kDescentTrials / graph_.num_ops(), 20'000,
                                                    std::min(500 * graph_.num_ops() + 20'000, 400'000));
      options.seed = seed + 16 * static_cast<std::uint64_t>(step);
      options.stop = &stop_;
      const AnnealResult result = anneal(graph_, plain_.sequence, options);
      add_descended(result.sequence);
      reached = std::min(reached, result.peak_bytes);
      if (result.peak_bytes > options.budget_bytes) missed = options.budget_bytes;
    }
  }

  double polish_seconds() const {
    const double wanted = context_.options().polish_s;
    const double usual = 2 + std::max<double>(graph_.num_ops() - 2000, 0) / 1500;
    return std::min(wanted >= 0 ? wanted : usual, (1 - kLastShare) * context_.seconds_left() - 0.1);
  }

  void polish_starts() {
    const double total = polish_seconds();
    if (total <= 0) return;
    const PlannerContext time = context_.within(total);
    std::vector<Plan> starts = starts_;
    if (above_ && above_->peak_bytes < budget_bytes_ + budget_bytes_ / 8) starts.push_back(*above_);
    if (is_loose()) {  // what has little structure is best begun from its own order
      starts.insert(starts.end(), 2, plain_);
    }
    double length = total / (is_loose() ? 8 : 5);
    for (int phase = 0, idle = 0; idle < 2 && !is_done() && time.seconds_left() > 0.01; ++phase) {
      std::vector<std::function<void()>> tasks;
      std::atomic<bool> improved{false};
      const bool may_ruin = graph_.num_ops() <= kMaxOpsOfDescents && fits(starts[0]);
      const bool is_ruin = may_ruin && (is_loose() ? phase % 3 == 2 : phase % 6 != 0);
      const int abreast = threads();
      const int count = phase == 0 ? static_cast<int>(starts.size()) : abreast;
      const int waves = (count + abreast - 1) / abreast;
      const double seconds = std::min(length, time.seconds_left()) / waves;
      for (int i = 0; i < count; ++i) {
        if (is_ruin) {
          tasks.push_back([&, i] {
            if (ruin(starts[0].sequence, seconds, static_cast<std::uint64_t>(1 + phase * 64 + i))) improved = true;
          });
          continue;
        }
        tasks.push_back([&, i] {
          PolishOptions options;
          options.budget_bytes = budget_bytes_;
          options.seconds = seconds;
          options.max_rounds = std::max<std::int64_t>(20'000, std::int64_t{4000} * graph_.num_ops());
          options.seed = static_cast<std::uint64_t>(1 + phase * 64 + i);
          options.heat = kHeats[(phase + i) % std::size(kHeats)];
          options.gradual = i % 2 == 0;
          options.stop = &stop_;
          const PolishResult result = polish(graph_, phase == 0 ? starts[i].sequence : starts[0].sequence, options);
          if (add(result.sequence)) improved = true;
        });
      }
      run_all("polish", tasks, 1 - time.seconds_left() / total);
      idle = improved ? 0 : idle + (phase > 0);
      starts = {starts_.front()};
      length *= 1.3;
    }
  }

  // True when it finds the best so far.
  bool ruin(const std::vector<OpId>& sequence, double seconds, std::uint64_t seed) {
    RuinOptions options;
    options.budget_bytes = budget_bytes_;
    options.seconds = seconds;
    options.seed = seed;
    options.stop = &stop_;
    return add(ruin_and_recreate(graph_, sequence, options));
  }

  // Runs the tasks in threads while the caller's thread tells progress and sees whether to stop.
  void run_all(const std::string& stage, const std::vector<std::function<void()>>& tasks, double share = 0) {
    const int count = static_cast<int>(tasks.size());
    std::atomic<int> finished{0};
    const auto run_one = [&](int i) {
      if (!stop_) tasks[i]();
      ++finished;
    };
    run_watched([&] { run_parallel(count, threads(), run_one); },
                [&] {
                  const double done = share > 0 ? share : static_cast<double>(finished) / count;
                  if (!context_.progress(stage, done)) stop_ = true;
                });
  }

  const TrainingGraph& graph_;
  Bytes budget_bytes_;
  const PlannerContext& context_;
  Micros bound_us_;
  Plan plain_;   // store-all
  Plan lowest_;  // of the curve: the one with the least peak
  std::mutex mutex_;
  std::vector<Plan> starts_;   // the best few, best first
  std::optional<Plan> above_;  // the next plan of the curve above the budget
  Bytes least_peak_bytes_ = 0, curve_least_bytes_ = 0, descended_bytes_ = std::numeric_limits<Bytes>::max();
  std::string note_;
  bool has_chain_ = false;
  std::atomic<bool> stop_{false}, fastsa_stop_{false}, fastsa_ended_{false};
  std::optional<Plan> fastsa_plan_;  // this and the error are written before fastsa_ended_
  std::exception_ptr fastsa_error_;
  std::jthread fastsa_;
};

}  // namespace

PlannerAnswer auto_planner(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  return Auto(graph, budget_bytes, context).run();
}

}  // namespace rockmate

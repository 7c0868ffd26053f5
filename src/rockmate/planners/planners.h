// All planners side by side: the published ones, ours, and `auto`, under one verifier and one simulator.
//
// A planner answers one question: the fastest sequence of this graph whose peak is at most this budget. It is a plain function
// in a file pair of this folder that says in its header which paper it follows, in the paper's symbols, and where it departs.
// To add one: the file pair, a line in planners.cc, and a row in the table of tests/planners/planners_test.cc.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rockmate/planner/planner.h"

namespace rockmate {

// What a planner sees of its surroundings. It polls expired() often, and then returns the best that it has.
class PlannerContext {
 public:
  explicit PlannerContext(PlannerOptions options, const std::atomic<bool>* stop = nullptr)
      : options_(std::move(options)), stop_(stop) {}

  const PlannerOptions& options() const { return options_; }  // time_limit_s counts from the context's making
  const std::atomic<bool>* stop() const { return stop_; }
  bool stopped() const { return stop_ != nullptr && *stop_; }
  double seconds_left() const;
  bool expired() const { return stopped() || seconds_left() <= 0; }
  // Tells the user how far a long solve is. False, as expired(), asks to stop.
  bool progress(const std::string& stage, double done) const;

  // A shorter limit for a part of the work.
  PlannerContext within(double seconds) const;

 private:
  PlannerOptions options_;
  const std::atomic<bool>* stop_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// What a planner found. The sequence need not be free of dead recomputations, nor priced: run_planner does both.
struct PlannerAnswer {
  std::vector<OpId> sequence;  // as schedule_from_sequence wants it; empty when none was found
  bool proved = false;         // no faster plan (or none at all, without a sequence) exists of this planner's kind
  Micros bound_us = 0;         // recomputation time that no schedule of the graph within the budget goes below
  Bytes least_peak_bytes = 0;  // of any plan that it met on its way; 0 when it did not look
  std::string note;            // one sentence for the user, e.g. why the planner does not apply to this graph
};

using PlannerFunction = PlannerAnswer (*)(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

struct PlannerEntry {
  const char* name;   // "rotor"
  const char* paper;  // "Beaumont et al. 2019, arXiv 1911.13214"; empty for our own
  const char* what;   // one line for --help and tables
  PlannerFunction run;
  bool needs_boundary = true;  // works on training steps only: a graph in one pass is divided by its marks, or refused
  bool is_quick = false;       // seconds at most, on any graph: auto asks it too
};

// In the order of the table: store-all first, auto last.
std::span<const PlannerEntry> planners();

// Throws std::invalid_argument, naming all that there are.
const PlannerEntry& find_planner(const std::string& name);

enum class PlannerStatus : std::uint8_t {
  kOptimal,     // proved: no plan of this planner's kind is faster
  kFeasible,    // within the budget
  kInfeasible,  // no plan of this planner's kind meets the budget, or it found none
  kTimeLimit,   // stopped before it found any
};

struct PlannerResult {
  PlannerStatus status = PlannerStatus::kInfeasible;
  std::optional<Plan> plan;          // verified, simulated, within the budget
  double lower_bound = 0;            // on the overhead of every schedule within the budget; infinite where there is none
  Bytes min_budget_bytes = 0;        // the least budget known to be possible; 0 when the planner knows none
  Bytes min_budget_bound_bytes = 0;  // no schedule of the graph has a lower peak
  double plan_seconds = 0;
  std::string note;
};

// What the planner itself says, not judged. One that works on training steps is given a graph in one pass divided by its marks.
PlannerAnswer ask(const PlannerEntry& planner, const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

// Asks a planner, judges its answer (a sequence that the verifier refuses or that exceeds the budget is none) and adds what no
// schedule goes below.
PlannerResult run_planner(const PlannerEntry& planner, const TrainingGraph& graph, Bytes budget_bytes,
                          const PlannerContext& context);

std::string name_of(PlannerStatus status);

}  // namespace rockmate

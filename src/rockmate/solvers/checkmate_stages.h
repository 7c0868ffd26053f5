// What rk-Checkmate's integer program is built from: stages, what can be needed when, and what gradients hold.
#pragma once

#include "rockmate/partition/block_problem.h"

namespace rockmate {

struct CheckmateStage {
  OpId first = kNone, end = kNone;  // backward ops [first, end): only `first` reads forward values, but in stage 0
  std::vector<ValueId> reads;       // managed forward values that `first` reads
  Bytes before_bytes = 0;           // gradients alive while ops are recomputed before `first`
  Bytes first_bytes = 0;            // gradients, outputs and workspace while `first` runs
  Bytes rest_bytes = 0;             // the most of that while the others run
};

struct CheckmateStages {
  // stages[0] holds the backward ops that run before any forward value is read; nothing is recomputed in it.
  std::vector<CheckmateStage> stages;
  std::vector<bool> managed;     // by value: forward values that the program decides about
  std::vector<int> last_needed;  // by value: last stage whose reads can depend on it, -1 for none
  Bytes kept_bytes = 0;          // negligible values that are kept without asking
  bool exact = true;             // there are none

  // How many (stage, op) pairs there are to decide about.
  int num_recomputations(const TrainingGraph& graph) const;
};

// Values below 1 / negligible_share of all forward bytes are kept without asking; 0 keeps none.
CheckmateStages checkmate_stages(const BlockProblem& problem, Bytes negligible_share = 1000);

}  // namespace rockmate

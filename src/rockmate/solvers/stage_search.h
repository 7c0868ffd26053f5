// The optimum of rk-Checkmate's block problem for one peak budget and all save budgets at once, by search.
//
// Walks the backward pass from its end to its beginning. A state is the set of forward values that the rest of the pass needs;
// it starts empty. Going back over a backward op adds what it reads; going back over a recomputation takes its outputs out,
// puts its inputs in, and costs its time. At the beginning the set is what the block must have saved.
//
//   backward ops b1 (reads h), b2 (reads y), y = relu(h):
//   {} --b2--> {y} --relu recomputed--> {h}  cost 1 --b1--> {h}       saves h, recomputes relu
//                  --not----------------> {y}  cost 0 --b1--> {h, y}  saves both
//
// Of two states at the same place, one that needs a subset for no more time makes the other useless: few survive. Same rules as
// the integer program of rk_checkmate.h (each op at most once per stage, in graph order), so both find the same
// optimum; this one takes milliseconds where few values matter, and gives up exactness where too many states survive.
#pragma once

#include <atomic>

#include "rockmate/partition/block_problem.h"

namespace rockmate {

struct StageSearchOptions {
  std::size_t max_states = 50'000;  // at one place; above, only the most promising stay
  Bytes negligible_share = 0;       // values below this share of all bytes are kept without asking; 0 for none
  Micros most_us = 1e300;           // plans that recompute longer are of no interest
  const std::atomic<bool>* stop = nullptr;
};

struct StageSearchResult {
  bool complete = true;  // no state was dropped, all values fit in, not stopped: the optimum of the program
  bool exact = true;     // and no value was left out
  // Least recomputation for what is saved: ascending saved bytes (the output x not counted), strictly descending time.
  struct Found {
    Bytes saved_bytes;
    Micros recompute_us;
    std::vector<OpId> sequence;  // local ids
  };
  std::vector<Found> found;
};

StageSearchResult stage_search(const BlockProblem& problem, Bytes peak_bytes, const StageSearchOptions& options = {});

}  // namespace rockmate

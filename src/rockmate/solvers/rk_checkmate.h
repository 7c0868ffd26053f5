// rk-Checkmate: the best backward pass of one block within two budgets, as an integer program.
//
// After the block solver of "Rockmate" (arXiv 2307.01236), which extends Checkmate (Jain et al., arXiv 1910.02653) by the save
// budget: `save_bytes` bounds what is kept between the block's forward and its backward, `peak_bytes` what is held at any
// moment of its backward. Symbols are Checkmate's:
//
//   stage j   the recomputations right before the j-th backward op that reads a forward value, and the ops up to the next
//   R[j, i]   forward op i is computed in stage j                                       (binary)
//   S[j, v]   value v is alive when stage j begins; S[1, .] is what the block saves     (continuous, integral given R)
//   A[j, v, e]  v is alive from its previous possible use in the stage to the e-th      (continuous; U and Free in the paper)
//
// minimise  sum time_i R[j, i]   subject to
//   A falls along a stage, but for where v is computed:  A[j, v, e] <= A[j, v, e - 1],  A[j, v, 0] <= S[j, v] + R[j, producer]
//   what is read is alive:   A[j, v, e] >= R[j, reader e];   A = 1 where the backward op reads v
//   S[j + 1, v] <= the last A of stage j;   bytes alive + gradients + workspace <= peak_bytes at every op;   sum S[1, .] <=
//   save
//
// Departures. Forward ops run once in the forward pass. Liveness has one variable per possible use, not one per position.
// Values below a thousandth of all bytes are kept (`exact` is false where that happened; the search of stage_search.h has no
// such limit). The optimum claimed is over sequences in which each stage computes an op at most once, in graph order, and the
// backward ops keep theirs. The block's output x is free to keep across the forward/backward gap (the next block holds it
// anyway).
#pragma once

#include <atomic>

#include "rockmate/ilp/model.h"
#include "rockmate/partition/block_problem.h"

namespace rockmate {

struct CheckmateOptions {
  double time_limit_s = 20;
  double relative_gap = 1e-3;
  const std::vector<OpId>* start = nullptr;  // a sequence to begin from, local ids
  const std::atomic<bool>* stop = nullptr;
};

struct CheckmateResult {
  ilp::Status status = ilp::Status::kUnknown;
  bool exact = true;           // the program left nothing out
  std::vector<OpId> sequence;  // local ids: forward pass, then backward pass; empty without a solution
  Micros bound_us = 0;         // no solution recomputes for less
};

CheckmateResult rk_checkmate(const BlockProblem& problem, Bytes save_bytes, Bytes peak_bytes, const CheckmateOptions& options);

}  // namespace rockmate

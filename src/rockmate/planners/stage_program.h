// Checkmate's program for a whole graph: what is recomputed and what is kept between any two ops of a fixed order.
//
// After Checkmate (Jain et al., arXiv 1910.02653), in its symbols:
//
//   stage t   ends with the first run of op t; the ops run in graph order, one new one a stage
//   R[t, i]   op i runs in stage t: 1 for i = t, a choice for i < t, in ascending order within the stage        (binary)
//   S[t, v]   value v is held when stage t begins                                                               (binary)
//   A[t, v, e]  v is held in stage t after the e-th op that reads or writes it             (continuous; U and Free in the
//   paper)
//
// minimise  sum of time_i R[t, i]   subject to
//   what is read is held:  A >= R of the reader;   S[t + 1, v] <= the last A of stage t
//   A falls along a stage, but for where v is computed:  A[t, v, e] <= A[t, v, e - 1] + R[t, producer]
//   bytes held + outputs + workspace <= budget at each op of each stage
//
// mm relu sum | expand_copy relu_backward mm_backward has six stages; y given up after sum makes S[3, y] = 0 and then
// R[4, relu] = 1, as relu_backward reads y.
//
// Departures. The paper computes bytes through products of R and S made linear; here each value's liveness is a variable, with
// the same solutions in integers and a tighter relaxation. In a training step with a boundary only the backward stages
// recompute, and only forward ops. Values of no bytes are held for nothing. Generator states of random ops that run again are
// charged.
#pragma once

#include <cstdint>
#include <vector>

#include "rockmate/ilp/model.h"
#include "rockmate/schedule/schedule.h"

namespace rockmate {

struct StageProgramOptions {
  // How far a stage's recomputations reach back: an op runs again only where the stage's op reads its result (1), or where an
  // op that does so reads it (2), and so on. 0: any op in any stage, also long before it is read.
  int reach = 0;
  int most_recomputes = 0;                  // of each op; 0 for no limit
  Bytes negligible_bytes = 0;               // values of so many bytes or fewer are held to their last possible read unasked
  std::int64_t most_nonzeros = 20'000'000;  // a larger program is not made: it would take too much memory
};

class StageProgram {
 public:
  StageProgram(const TrainingGraph& graph, Bytes budget_bytes, const StageProgramOptions& options = {});

  bool too_large() const { return too_large_; }
  // Found without a solve: some op's own bytes do not fit.
  bool infeasible() const { return infeasible_; }
  const ilp::Model& model() const { return model_; }

  // What the solution says, as schedule_from_sequence wants it.
  std::vector<OpId> sequence(const std::vector<double>& values) const;
  // R of a sequence in the program's order, to begin from. Runs that the program has no variable for are left out.
  std::vector<ilp::Term> start(const std::vector<OpId>& sequence) const;

  // S[t, v] of a solution of the relaxation; 0 for what can't be held and what has no variable.
  double kept(const std::vector<double>& values, OpId stage, ValueId v) const;

 private:
  void find_managed();
  void find_last_needed();
  void find_fixed_bytes();
  std::vector<char> in_reach(OpId t) const;
  void add_runs();
  void add_uses(OpId t);
  void add_replays();
  void add_stage(OpId t);
  void add_recompute(OpId t, OpId op);
  void add_first_run(OpId t);
  void add_memory_row(OpId t, OpId op, Bytes fixed_bytes, Bytes run_bytes);
  void add_boundary_row();
  void begin_running_sum();
  void replace(ValueId v, int variable);
  std::vector<ilp::Term> held_terms() const;
  bool may_recompute(OpId t, OpId op) const;
  double scaled(Bytes bytes) const { return static_cast<double>(bytes) / static_cast<double>(largest_); }

  const TrainingGraph& graph_;
  Bytes budget_bytes_;
  StageProgramOptions options_;
  OpId num_forward_;
  ilp::Model model_;
  bool too_large_ = false, infeasible_ = false;
  Bytes largest_ = 1;  // bytes are shares of the largest value: numbers that the solver's tolerances are made for

  std::vector<char> managed_;          // by value: written, of some bytes, not held to the end
  std::vector<OpId> last_needed_;      // by value: the last stage whose reads can depend on it, kNone for none
  std::vector<Bytes> fixed_bytes_;     // by stage: what is held when it begins without a choice
  Bytes unread_tangent_bytes_ = 0;     // held at the boundary alone
  std::vector<std::vector<int>> run_;  // R by stage and op
  std::vector<std::vector<std::pair<ValueId, int>>> kept_;  // S by stage
  std::vector<OpId> random_ops_;                            // that the program may run again
  std::vector<std::vector<int>> replays_;  // by stage and index into random_ops_: runs again in this stage or later

  // At the current position:
  std::vector<int> held_;            // by value: A
  std::vector<ValueId> candidates_;  // values that have an A, ascending
  int running_sum_;                  // variable: bytes of all A, within a stage with recomputations
  std::vector<ilp::Term> change_;    // what running_sum_ does not yet know
};

}  // namespace rockmate

// What planners that solve programs have in common: a solve that can be stopped, and a sequence to begin from.
#pragma once

#include <string>
#include <vector>

#include "rockmate/ilp/model.h"
#include "rockmate/planners/planners.h"
#include "rockmate/planners/stage_program.h"

namespace rockmate {

// A solver that gets more than this looks at its clock too late.
inline constexpr double kNonzerosPerSecond = 50'000;

// Solves in a thread of its own while the caller's thread tells the context of it; ends with the context.
ilp::Outcome solve_within(const PlannerContext& context, const std::string& stage, const ilp::Model& model,
                          ilp::SolveOptions options);

// Eviction down to the budget, then filled up again. Empty when eviction does not get there.
std::vector<OpId> evicted_sequence(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

// Values below the budget over this are left out of programs that only look for a start.
inline constexpr Bytes kNegligibleShare = 2000;

// The best sequence so far of programs of one graph and budget.
struct ProgramSearch {
  std::vector<OpId> sequence;  // empty for none
  Micros time_us = 0;
  bool proved = false;     // the last program was solved to its optimum (or proved to have no solution)
  bool too_large = false;  // the last program was not made: too large for memory, or for the time given
};

// Is the best sequence as fast as any schedule within the budget can be? bound_us is lower_bound_us(graph, budget).
bool at_the_bound(const TrainingGraph& graph, Micros bound_us, const ProgramSearch& search);

// Makes one program, solves it from the best sequence so far, and keeps what is better.
void solve_program(const TrainingGraph& graph, Bytes budget_bytes, const StageProgramOptions& options, double most_seconds,
                   const PlannerContext& context, ProgramSearch& search);

}  // namespace rockmate

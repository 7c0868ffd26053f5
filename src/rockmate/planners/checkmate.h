// Checkmate (Jain et al., arXiv 1910.02653): the whole graph as one integer program, every op a stage.
//
// The program is that of stage_program.h. What is proved is the optimum over sequences in graph order in which each stage runs
// an op at most once more: another order of the backward ops may still be faster. The program grows with the square of the
// number of ops, which is the paper's own limit; above 20 million nonzeros, or 50 thousand a second of
// the time limit, it is not made.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer checkmate(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

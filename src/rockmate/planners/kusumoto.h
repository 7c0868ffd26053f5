// Dynamic programming over lower sets: "A Graph Theoretic Framework of Recomputation Algorithms for Memory-Efficient
// Backpropagation" (Kusumoto, Inoue, Watanabe, Akiba, Koyama 2019, arXiv 1905.11722). Symbols are the paper's:
//
//   L_1 < L_2 < ... < L_k = V   lower sets of the forward ops;  V_i = L_i \ L_(i-1)
//   d(L)      what L writes and ops outside read: its boundary.  U_i, all boundaries up to i, is kept by the forward pass
//   T(.), M(.)   time and bytes of a set
//
// Canonical strategy of a sequence: the forward pass keeps U_k; the backward pass takes V_k, ..., V_1, and recomputes of each
// what is not kept. Its recomputation is the sum of T(V_i \ d(L_i)), its peak about max_i of M(U_(i-1)) + M(V_i) + gradients.
//
//   opt[L, t] = the least M(U) of a sequence that ends in L, recomputes for t, and stays within B at every V_i
//   opt[L', t + T(V' \ d(L'))] <- opt[L, t] + M(d(L') \ L)    for each L < L',  V' = L' \ L
//
// The exact program takes all lower sets, where there are at most kMaxLowerSets; else the approximate one takes the
// closures of single ops. Of all t at V the least is the time-centric strategy, the greatest the memory-centric one; both are
// tried.
//
// Departures. The last V_k is not recomputed, as the forward pass has just left it. Ops that nothing in the backward pass
// depends on are not recomputed. Gradients are not M(V_i) again but the largest working set of V_i's backward ops, known
// exactly. t is rounded into kTimes classes of which each keeps its least M(U). Graphs of more ops than kMaxLowerSets use the
// closures with the smallest boundary of their neighbourhood. B is searched, so that the simulated peak is within the budget.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer kusumoto(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

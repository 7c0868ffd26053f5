// Dynamic tensor rematerialization: "Dynamic Tensor Rematerialization" (Kirisame et al. 2020, arXiv 2006.09616), simulated on
// the graph's ops as the stream that an online runtime would see. Symbols are the paper's:
//
//   when an op is called, its missing inputs are rematerialised (and theirs, recursively), locked while in use; while its
//   outputs and workspace don't fit in the budget, the evictable tensor t with the least h(t) is evicted
//
//   h_DTR^eq(t) = (c(t) + cost of the evicted neighbourhood) / (m(t) s(t))
//   c(t)   time of the op that makes t;  m(t) its bytes;  s(t) its staleness, the time since it was last used
//   the neighbourhood is approximated as in the paper: evicted tensors that are neighbours in the graph share a
//   union-find class with its summed cost; a rematerialised tensor takes its cost out and leaves its class
//
//   room for two of a, b, c:   a and b are there, c is to be computed: of equal cost and size, a is evicted, as it is
//   older; when a is read again it is rematerialised, and b goes for it
//
// When the last op of the stream that reads a tensor has run, it is evicted at once (the paper's eager eviction); what can't be
// made again is banished, and what was made from it then stays. Online, so nothing is known of later ops.
//
// Departures. The step's forward pass computes nothing twice, so a tensor that a later forward op reads is not evicted before.
// An eviction looks at up to kSample tensors, evenly picked (the paper samples at random). Rematerialised tensors that no later
// op of the stream reads go first. The count of memory is of the runtime, which frees later than a schedule needs to: runtime
// budgets a little above the real one are tried too. Gives up where it recomputes for more than kHopeless times the step.
#pragma once

#include "rockmate/planners/planners.h"

namespace rockmate {

PlannerAnswer dtr(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

// One run within a runtime budget: the ops in the order in which they ran, empty when nothing could be evicted any more (or
// time is up).
std::vector<OpId> dtr_run(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context);

}  // namespace rockmate

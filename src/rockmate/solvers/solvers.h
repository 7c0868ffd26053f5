// All solvers, by what they work on. Each is a file pair, a plain function of a graph and a budget, and says in its header
// which paper it follows and which optimum it claims.
//
//   a block         stage_search    the optimum at one peak for all save budgets, by search over needed sets
//                   rk_checkmate    the same optimum at one (save, peak) pair, by integer programming
//                   block_options   the grid of pairs, from these two and eviction; block_cache keeps it on disk
//   the chain       rk_rotor        every memory at once, by dynamic programming over block options
//   any graph       evict           greedy descent of the peak
//                   keep            takes recomputations out again where there is room
//                   anneal          from far above the budget to within it, order included
//                   polish          changes a good sequence near its budget until nothing improves it
#pragma once

#include "rockmate/solvers/block_cache.h"
#include "rockmate/solvers/block_options.h"
#include "rockmate/solvers/evict.h"
#include "rockmate/solvers/keep.h"
#include "rockmate/solvers/rk_checkmate.h"
#include "rockmate/solvers/rk_rotor.h"
#include "rockmate/solvers/stage_search.h"

#include "tests/oracle/exhaustive.h"

#include <doctest/doctest.h>

#include "rockmate/planner/planner.h"
#include "rockmate/solvers/block_options.h"
#include "rockmate/solvers/rk_checkmate.h"
#include "rockmate/solvers/stage_search.h"
#include "tests/example_graph.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;
using namespace rockmate::testing;

namespace {

BlockProblem one_block(const TrainingGraph& graph) {
  Chain chain;
  Block block;
  block.end = num_forward_ops(graph);
  for (OpId op = block.end; op < graph.num_ops(); ++op) block.backward.push_back(op);
  chain.blocks = {block};
  chain.pinned.assign(graph.num_values(), false);
  for (ValueId v = 0; v < graph.num_values(); ++v) {
    const OpId producer = graph.values[v].producer;
    const bool is_forward = producer != kNone && producer < block.end;
    chain.pinned[v] = is_forward && graph.values[v].retention != Retention::kUntilLastUse;
  }
  chain.block_of.assign(graph.num_ops(), 0);
  chain.gradient_bytes = {0, 0};
  chain.pinned_bytes_at = {0};
  return block_problem(graph, chain, 0);
}

// The least recomputation that the search found within the save budget.
Micros searched(const StageSearchResult& result, Bytes save_bytes) {
  Micros best = kNoSchedule;
  for (const auto& found : result.found) {
    if (found.saved_bytes <= save_bytes) best = std::min(best, found.recompute_us);
  }
  return best;
}

}  // namespace

TEST_CASE("the oracle on the example of graph.h") {
  // Plain: forward h 1000 | h, y 1100 | y, loss 104, backward y, loss, dloss 5, dy 20 -> peak 1100. The forward pass needs
  // that.
  const TrainingGraph graph = example::graph();
  Exhaustive oracle(graph);
  CHECK(oracle.least_recomputation(1100) == 0);
  CHECK(oracle.least_recomputation(1099) == kNoSchedule);
}

TEST_CASE("no plan beats exhaustive search at any budget") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const TrainingGraph graph = random_step(3 + static_cast<int>(seed % 5), seed);
    Exhaustive oracle(graph);
    PlannerOptions options;
    options.threads = 1;
    const PlanCurve curve = plan_curve(graph, options);
    for (const Plan& plan : curve.plans) {
      CAPTURE(plan.peak_bytes);
      CHECK(plan.time_us - curve.store_all_time_us >= oracle.least_recomputation(plan.peak_bytes) - 1e-9);
    }
    CHECK(oracle.least_recomputation(curve.store_all_peak_bytes) == 0);
  }
}

TEST_CASE("block search and integer program both find the optimum that they claim") {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const TrainingGraph graph = random_step(3 + static_cast<int>(seed % 4), 100 + seed);
    const BlockProblem problem = one_block(graph);
    Exhaustive oracle(problem.graph);
    const BlockOption all = price_option(problem, store_all_sequence(problem.graph));
    for (int peak_share : {100, 85, 70}) {
      const Bytes peak_bytes = all.backward_peak_bytes * peak_share / 100;
      const StageSearchResult search = stage_search(problem, peak_bytes);
      REQUIRE(search.exact);
      for (int save_share : {100, 50, 0}) {
        const Bytes save_bytes = all.saved_bytes * save_share / 100;
        CAPTURE(seed);
        CAPTURE(peak_share);
        CAPTURE(save_share);
        const Micros best = oracle.least_block_recomputation(problem, save_bytes, peak_bytes);
        CHECK(searched(search, save_bytes) == best);
        CheckmateOptions how;
        how.relative_gap = 0;
        const CheckmateResult program = rk_checkmate(problem, save_bytes, peak_bytes, how);
        if (best == kNoSchedule) {
          CHECK(program.status == ilp::Status::kInfeasible);
          continue;
        }
        REQUIRE(program.status == ilp::Status::kOptimal);
        REQUIRE(program.exact);
        const BlockOption option = price_option(problem, program.sequence);
        CHECK(option.recompute_us == best);
        CHECK(option.saved_bytes <= save_bytes);
        CHECK(option.backward_peak_bytes <= peak_bytes);
      }
    }
  }
}

// The planners that prove or search on the whole graph, held against exhaustive search on many small graphs.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "rockmate/planner/judge.h"
#include "rockmate/planners/graph_hierarchy.h"
#include "rockmate/planners/planners.h"
#include "rockmate/planners/stage_program.h"
#include "rockmate/planners/tree_decomposition.h"
#include "tests/oracle/exhaustive.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;
using namespace rockmate::testing;

namespace {

PlannerResult run(const char* planner, const TrainingGraph& graph, Bytes budget) {
  PlannerOptions options;
  options.time_limit_s = 20;
  return run_planner(find_planner(planner), graph, budget, PlannerContext(options));
}

Plan plain_plan(const TrainingGraph& graph) { return *judged_plan(graph, store_all_sequence(graph), ""); }

}  // namespace

TEST_CASE("checkmate's optimum in graph order is never below the exhaustive one, and mostly is it") {
  int cases = 0, equal = 0;
  for (unsigned seed = 0; seed < 25; ++seed) {
    const TrainingGraph graph = random_step(3 + static_cast<int>(seed % 4), 900 + seed);
    const Plan plain = plain_plan(graph);
    Exhaustive oracle(graph);
    for (int percent : {95, 85, 75, 65}) {
      CAPTURE(seed);
      CAPTURE(percent);
      const Bytes budget = plain.peak_bytes * percent / 100;
      const Micros least = oracle.least_recomputation(budget);
      const PlannerResult result = run("checkmate", graph, budget);
      if (least == kNoSchedule) {
        CHECK(result.status == PlannerStatus::kInfeasible);
        continue;
      }
      // The oracle may run an op twice between two backward ops, and in any order: a schedule may exist for it alone.
      if (!result.plan) continue;
      CHECK(result.status == PlannerStatus::kOptimal);
      const Micros found = result.plan->time_us - plain.time_us;
      CHECK(found >= least - 1e-9);
      ++cases;
      equal += found <= least + 1e-9;
    }
  }
  MESSAGE(equal << " of " << cases << " at the exhaustive optimum");
  CHECK(equal >= cases * 9 / 10);
}

TEST_CASE("moccasin computes no value more than twice and is never faster than checkmate") {
  for (unsigned seed = 0; seed < 15; ++seed) {
    TrainingGraph graph = random_step(4 + static_cast<int>(seed % 4), 40 + seed);
    if (seed % 2 == 1) graph = in_one_pass(graph);
    const Plan plain = plain_plan(graph);
    for (int percent : {90, 75}) {
      CAPTURE(seed);
      CAPTURE(percent);
      const Bytes budget = plain.peak_bytes * percent / 100;
      const PlannerResult result = run("moccasin", graph, budget);
      if (!result.plan) continue;
      std::vector<int> count(graph.num_ops(), 0);
      for (OpId op : result.plan->sequence) CHECK(++count[op] <= 2);
      const PlannerResult free = run("checkmate", graph, budget);
      REQUIRE(free.plan);
      CHECK(free.plan->time_us <= result.plan->time_us * (1 + 1e-4) + 1e-9);
      CHECK(free.lower_bound <= result.plan->overhead + 1e-9);
    }
  }
}

TEST_CASE("in one pass no bound is above a plan, and every planner of whole graphs keeps to the budget") {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const TrainingGraph graph = in_one_pass(random_step(6, 70 + seed));
    const Plan plain = plain_plan(graph);
    for (int percent : {90, 70}) {
      const Bytes budget = plain.peak_bytes * percent / 100;
      double least = std::numeric_limits<double>::infinity(), bound = 0;
      for (const char* planner : {"checkmate", "checkmate-lp", "moccasin", "twremat", "hiremate"}) {
        CAPTURE(seed);
        CAPTURE(planner);
        const PlannerResult result = run(planner, graph, budget);
        bound = std::max(bound, result.plan ? 0 : result.lower_bound);
        if (!result.plan) continue;
        CHECK(result.plan->peak_bytes <= budget);
        least = std::min(least, result.plan->overhead);
      }
      CHECK(bound <= least);
    }
  }
}

TEST_CASE("a program that is too large is refused before it takes memory") {
  const TrainingGraph graph = transformer(4);
  StageProgramOptions options;
  options.most_nonzeros = 1000;
  CHECK(StageProgram(graph, plain_plan(graph).peak_bytes / 2, options).too_large());
}

TEST_CASE("a tree decomposition has every edge in a bag and each op's bags in one piece") {
  const TrainingGraph graph = unet(3);
  const TreeDecomposition decomposition = min_degree_decomposition(graph);
  const auto holds = [&](OpId bag, OpId op) {
    const auto& ops = decomposition.bags[bag];
    return std::find(ops.begin(), ops.end(), op) != ops.end();
  };
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (ValueId v : graph.ops[op].inputs) {
      const OpId producer = graph.values[v].producer;
      if (producer != kNone) CHECK((holds(op, producer) || holds(producer, op)));
    }
    // In one piece: of the bags that hold op, only its own has a parent that does not.
    for (OpId bag = 0; bag < graph.num_ops(); ++bag) {
      if (bag != op && holds(bag, op)) CHECK(holds(decomposition.parent[bag], op));
    }
  }
  const SeparatorTree tree = divide(decomposition);
  const int deepest = *std::max_element(tree.depth.begin(), tree.depth.end());
  CHECK(std::count(tree.parent.begin(), tree.parent.end(), kNone) == 1);
  CHECK((1 << deepest) <= graph.num_ops() * 2);  // each part is at most half of what it is a part of
}

TEST_CASE("twremat goes far below store-all on a long chain") {
  // 60 layers of equal sizes: the forward pass holds one value of 100 bytes for each op, divide and conquer some log n of them.
  const TrainingGraph graph = plain_chain(60);
  const Plan plain = plain_plan(graph);
  const PlannerResult result = run("twremat", graph, plain.peak_bytes / 5);
  REQUIRE(result.plan);
  CHECK(result.plan->peak_bytes <= plain.peak_bytes / 5);
}

TEST_CASE("the hierarchy covers the forward pass, and its root every leaf") {
  const TrainingGraph graph = transformer(6);
  const GraphHierarchy hierarchy = graph_hierarchy(graph);
  OpId next = 0;
  for (const Block& leaf : hierarchy.leaves.blocks) {
    CHECK(leaf.begin == next);
    next = leaf.end;
  }
  CHECK(next == num_forward_ops(graph));
  CHECK(hierarchy.nodes.back().first_leaf == 0);
  CHECK(hierarchy.nodes.back().end_leaf == static_cast<int>(hierarchy.leaves.blocks.size()));
  std::multiset<int> children;
  for (const auto& node : hierarchy.nodes) children.insert(node.children.begin(), node.children.end());
  for (int n = 0; n + 1 < static_cast<int>(hierarchy.nodes.size()); ++n) CHECK(children.count(n) == 1);
}

#include "rockmate/planners/rotor.h"

#include <doctest/doctest.h>

#include <limits>
#include <set>

#include "rockmate/planner/judge.h"
#include "rockmate/planners/checkpoints.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;

namespace {

PlannerResult run(const char* planner, const TrainingGraph& graph, Bytes budget) {
  return run_planner(find_planner(planner), graph, budget, PlannerContext(PlannerOptions{}));
}

// Layers of two stages that look alike to nothing but themselves: wide inside, one value between.
TrainingGraph two_stage_layers(int layers) {
  testing::StepBuilder step;
  ValueId x = step.input(100);
  const auto stage = [&](Bytes wide, Micros time_us) {
    const ValueId start = x;
    for (int i = 0; i < 5; ++i) x = step.op("inner", {x}, {.bytes = wide, .time_us = time_us, .saves_inputs = true});
    x = step.op("add", {start, x}, {.bytes = 100, .time_us = 1, .saves_inputs = true});
  };
  x = step.op("embedding", {x}, {.bytes = 100, .time_us = 1});
  for (int i = 0; i < layers; ++i) {
    stage(400, 10);
    stage(900, 25);
  }
  step.op("loss", {x}, {.bytes = 4, .time_us = 1, .saves_inputs = true});
  return step.finish();
}

}  // namespace

TEST_CASE("layers are the period of the chain") {
  CHECK(layer_begins({0, 1, 2, 1, 2, 1, 2, 3}) == std::vector<int>{0, 1, 3, 5, 7});
  CHECK(layer_begins({5, 5, 5, 5}) == std::vector<int>{0, 1, 2, 3});
  CHECK(layer_begins({0, 1, 2, 3}) == std::vector<int>{0, 1, 2, 3});
  CHECK(layer_begins({0, 1, 2, 3, 1, 2, 3, 1, 2, 3}) == std::vector<int>{0, 1, 4, 7});
  CHECK(layer_begins({7}) == std::vector<int>{0});
}

TEST_CASE("a merged chain covers the same ops, with the boundaries that are left") {
  const TrainingGraph graph = two_stage_layers(4);
  const Chain chain = partition_chain(graph);
  REQUIRE(chain.blocks.size() >= 8);
  std::vector<int> begins;
  for (int k = 0; k < static_cast<int>(chain.blocks.size()); k += 2) begins.push_back(k);
  const Chain merged = merged_chain(chain, begins);
  CHECK(merged.blocks.front().begin == 0);
  CHECK(merged.blocks.back().end == num_forward_ops(graph));
  std::size_t backward = 0;
  for (std::size_t i = 0; i < merged.blocks.size(); ++i) {
    if (i > 0) CHECK(merged.blocks[i].begin == merged.blocks[i - 1].end);
    backward += merged.blocks[i].backward.size();
    CHECK(std::is_sorted(merged.blocks[i].backward.begin(), merged.blocks[i].backward.end()));
  }
  CHECK(backward == graph.ops.size() - static_cast<std::size_t>(num_forward_ops(graph)));
  CHECK(merged.gradient_bytes.size() == merged.blocks.size() + 1);
  CHECK(merged.gradient_bytes.back() == chain.gradient_bytes.back());
}

TEST_CASE("Rotor is no slower than the best choice of blocks to keep, each other one recomputed once") {
  const TrainingGraph graph = two_stage_layers(3);
  const Plan plain = *judged_plan(graph, store_all_sequence(graph), "");
  const Chain chain = partition_chain(graph);
  const int count = static_cast<int>(chain.blocks.size());
  // Neighbours that are kept go into one segment with the next one: recomputing ends at the last segment, which is kept whole.
  for (int percent = 90; percent >= 40; percent -= 10) {
    const Bytes budget = plain.peak_bytes * percent / 100;
    Micros best = std::numeric_limits<Micros>::infinity();
    for (unsigned kept = 0; kept < (1u << count); ++kept) {
      std::vector<OpId> sequence = store_all_sequence(graph);
      sequence.resize(num_forward_ops(graph));
      for (int k = count - 1; k >= 0; --k) {
        if ((kept >> k & 1) == 0) {
          for (OpId op = chain.blocks[k].begin; op < chain.blocks[k].end; ++op) sequence.push_back(op);
        }
        sequence.insert(sequence.end(), chain.blocks[k].backward.begin(), chain.blocks[k].backward.end());
      }
      const Plan plan = *judged_plan(graph, sequence, "");
      if (plan.peak_bytes <= budget) best = std::min(best, plan.time_us);
    }
    CAPTURE(percent);
    const PlannerResult found = run("rotor", graph, budget);
    CHECK(found.plan.has_value() == std::isfinite(best));
    if (found.plan) CHECK(found.plan->time_us <= best * (1 + 1e-9));
  }
}

TEST_CASE("the finest blocks and whole layers: rotor is the better of the two") {
  const TrainingGraph graph = testing::transformer(4);
  const Plan plain = *judged_plan(graph, store_all_sequence(graph), "");
  bool differ = false;
  for (int percent = 90; percent >= 20; percent -= 10) {
    const PlannerResult layers = run("rotor-layers", graph, plain.peak_bytes * percent / 100);
    const PlannerResult better = run("rotor", graph, plain.peak_bytes * percent / 100);
    CAPTURE(percent);
    if (!layers.plan) continue;
    REQUIRE(better.plan);
    CHECK(better.plan->time_us <= layers.plan->time_us);
    differ |= better.plan->time_us < layers.plan->time_us;
  }
  CHECK(differ);
}

TEST_CASE("a graph without a chain: one block, which keeps all") {
  testing::StepBuilder step;
  const ValueId x = step.input(1);
  const ValueId a = step.op("f", {x}, {.bytes = 10, .saves_inputs = true});
  step.op("g", {a}, {.bytes = 4, .saves_inputs = true});
  const TrainingGraph graph = step.finish();
  const PlannerResult result = run("rotor", graph, 1);
  CHECK_FALSE(result.plan);
  CHECK(result.note == "the graph has no chain: one block, which keeps all");
}

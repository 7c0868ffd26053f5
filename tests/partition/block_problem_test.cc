#include "rockmate/partition/block_problem.h"

#include <doctest/doctest.h>

#include "tests/planner/model_graphs.h"

using namespace rockmate;
using namespace rockmate::testing;

TEST_CASE("a block's problem pays for its own values only") {
  // Two blocks of a chain in -> a -> b -> c; the cut carries b. Block 2 is c and its backward: b is its input, free for it.
  StepBuilder step;
  const ValueId a = step.op("a", {step.input(5)}, {.bytes = 10, .saves_inputs = true});
  const ValueId b = step.op("b", {a}, {.bytes = 20, .saves_inputs = true});
  step.op("c", {b}, {.bytes = 30, .saves_inputs = true});
  const TrainingGraph graph = step.finish();
  Chain chain;
  chain.blocks = {{0, 2, {4, 5}, kNone, b}, {2, 3, {3}, b, kNone}};
  chain.pinned.assign(graph.num_values(), false);
  chain.pinned[graph.ops[2].outputs[0]] = true;
  chain.block_of = {0, 0, 1, 1, 0, 0};
  chain.gradient_bytes = {0, 20, 30};
  chain.pinned_bytes_at = {30, 30};
  const BlockClasses classes = classify_blocks(graph, chain);
  REQUIRE(classes.problems.size() == 2);
  CHECK(classes.passing_bytes == std::vector<Bytes>{0, 0});

  const BlockProblem& first = classes.problems[0];
  REQUIRE(first.output != kNone);
  CHECK(first.graph.values[first.output].bytes == 20);
  CHECK(first.graph.values[first.output].retention == Retention::kUntilForwardEnd);

  const BlockProblem& second = classes.problems[1];
  CHECK(second.output == kNone);
  for (const Value& value : second.graph.values) {
    CHECK(value.kind != ValueKind::kActivation);  // b comes from outside, the result is pinned
    if (value.kind == ValueKind::kGradient) CHECK(value.retention == Retention::kUntilStepEnd);  // db, for block 1
  }
}

TEST_CASE("blocks are equal up to renaming and not otherwise") {
  TrainingGraph graph = transformer(4);
  const Chain chain = partition_chain(graph);
  const BlockClasses before = classify_blocks(graph, chain);
  const auto last_attention = std::find(before.class_of.rbegin(), before.class_of.rend(), before.class_of[3]);
  CHECK(last_attention != before.class_of.rend());
  // One microsecond more in one layer makes it different.
  graph.ops[chain.blocks[3].begin].time_us += 1;
  const BlockClasses after = classify_blocks(graph, chain);
  CHECK(after.problems.size() == before.problems.size() + 1);
}

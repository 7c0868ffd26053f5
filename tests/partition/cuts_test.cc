#include "rockmate/partition/cuts.h"

#include <doctest/doctest.h>

#include "tests/planner/model_graphs.h"

using namespace rockmate;
using namespace rockmate::testing;

namespace {

std::vector<OpId> positions(const std::vector<Cut>& cuts) {
  std::vector<OpId> result;
  for (const Cut& cut : cuts) result.push_back(cut.after);
  return result;
}

}  // namespace

TEST_CASE("cuts lie where one value crosses") {
  // in -> a -> b -> c = f(a, b) -> d: after a only a crosses; after b both a and b do; after c only c.
  StepBuilder step;
  const ValueId a = step.op("a", {step.input(1)}, {.bytes = 1});
  const ValueId b = step.op("b", {a}, {.bytes = 1});
  const ValueId c = step.op("c", {a, b}, {.bytes = 1});
  step.op("d", {c}, {.bytes = 1});
  const TrainingGraph graph = step.finish();
  const std::vector<Cut> cuts = find_cuts(graph, std::vector<bool>(graph.num_values(), false));
  CHECK(positions(cuts) == std::vector<OpId>{0, 2});
  CHECK(cuts[0].value == a);
  CHECK(cuts[0].is_fork);
  CHECK_FALSE(cuts[0].is_join);
  CHECK(cuts[1].value == c);
  CHECK(cuts[1].is_join);
}

TEST_CASE("a pinned value hides no cut") {
  // A mask is made first and read by every other op.
  StepBuilder step;
  const ValueId in = step.input(1);
  const ValueId mask = step.op("mask", {in}, {.bytes = 1});
  ValueId x = step.op("x0", {in}, {.bytes = 1});
  for (int i = 1; i < 4; ++i) x = step.op("x", {x, mask}, {.bytes = 1});
  const TrainingGraph graph = step.finish();
  std::vector<bool> pinned(graph.num_values(), false);
  CHECK(positions(find_cuts(graph, pinned)) == std::vector<OpId>{0});
  pinned[mask] = true;
  CHECK(positions(find_cuts(graph, pinned)) == std::vector<OpId>{0, 1, 2, 3});
  CHECK(find_cuts(graph, pinned)[0].value == kNone);
}

TEST_CASE("equal layers of a plain chain get equal pieces") {
  const TrainingGraph graph = plain_chain(30);
  const std::vector<bool> pinned(graph.num_values(), false);
  const std::vector<Cut> cuts = group_cuts(graph, find_cuts(graph, pinned));
  REQUIRE(cuts.size() > 3);
  const OpId length = cuts[1].after - cuts[0].after;
  CHECK(length % 2 == 0);
  for (std::size_t i = 2; i < cuts.size(); ++i) CHECK(cuts[i].after - cuts[i - 1].after == length);
}

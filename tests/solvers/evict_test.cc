#include "rockmate/solvers/evict.h"

#include <doctest/doctest.h>

#include <set>

#include "rockmate/schedule/schedule.h"
#include "rockmate/schedule/verifier.h"
#include "rockmate/solvers/keep.h"
#include "rockmate/solvers/sequence_memory.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;
using namespace rockmate::testing;

namespace {

// a (8 bytes, cheap) and b (8 bytes, dear) are both kept for the end of the backward pass, over a peak in the middle.
TrainingGraph two_kept() {
  StepBuilder step;
  const ValueId in = step.input(1);
  const ValueId a = step.op("a", {in}, {.bytes = 8, .time_us = 1, .saves_result = true});
  const ValueId b = step.op("b", {a}, {.bytes = 8, .time_us = 50, .saves_result = true});
  const ValueId c = step.op("c", {b}, {.bytes = 2, .time_us = 5});
  const ValueId wide = step.op("wide", {c}, {.bytes = 40, .time_us = 5, .saves_result = true});
  step.op("loss", {wide}, {.bytes = 1, .time_us = 1});
  return step.finish();
}

}  // namespace

TEST_CASE("eviction drops the value with the most bytes per microsecond first") {
  const TrainingGraph graph = two_kept();
  std::vector<std::vector<OpId>> lower;
  evict(graph, store_all_sequence(graph), 0, [&](const std::vector<OpId>& sequence, Bytes) {
    lower.push_back(sequence);
    return true;
  });
  REQUIRE(!lower.empty());
  const std::vector<OpId>& first = lower.front();
  CHECK(std::count(first.begin(), first.end(), 0) == 2);  // a again
  CHECK(std::count(first.begin(), first.end(), 1) == 1);  // b once
}

TEST_CASE("every sequence on the way down is valid, lower and ends where asked") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const TrainingGraph graph = random_step(30, seed);
    Bytes last = SequenceMemory(graph, store_all_sequence(graph)).peak_bytes();
    const Bytes target = last * 8 / 10;
    const auto end = evict(graph, store_all_sequence(graph), target, [&](const std::vector<OpId>& sequence, Bytes peak) {
      CHECK(peak < last);
      CHECK(peak == SequenceMemory(graph, sequence).peak_bytes());
      CHECK_FALSE(verify(graph, schedule_from_sequence(graph, sequence)).has_value());
      CHECK(last > target);
      last = peak;
      return true;
    });
    CHECK(SequenceMemory(graph, end).peak_bytes() == last);
  }
}

TEST_CASE("keeping takes back what has room and never passes the budget") {
  const TrainingGraph graph = two_kept();
  const std::vector<OpId> plain = store_all_sequence(graph);
  const Bytes plain_peak = SequenceMemory(graph, plain).peak_bytes();
  const std::vector<OpId> low = evict(graph, plain, 0);
  REQUIRE(low.size() > plain.size());
  CHECK(keep_within(graph, low, plain_peak) == plain);
  const std::atomic<bool> stop{true};  // it ends at once, with what it was given
  CHECK(keep_within(graph, low, plain_peak, &stop) == without_dead_recomputations(graph, low));
  const Bytes low_peak = SequenceMemory(graph, low).peak_bytes();
  CHECK(SequenceMemory(graph, keep_within(graph, low, low_peak)).peak_bytes() <= low_peak);
}

TEST_CASE("what can't be recomputed is never recomputed") {
  TrainingGraph graph = transformer(2);
  std::set<OpId> fixed;
  for (OpId op = 0; op < num_forward_ops(graph); op += 3) {
    graph.ops[op].recomputable = false;
    fixed.insert(op);
  }
  const std::vector<OpId> low = evict(graph, store_all_sequence(graph), 0);
  for (OpId op : fixed) CHECK(std::count(low.begin(), low.end(), op) == 1);
}

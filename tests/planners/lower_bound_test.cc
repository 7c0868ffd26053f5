#include "rockmate/planners/lower_bound.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rockmate/planner/judge.h"
#include "rockmate/solvers/min_cut.h"
#include "tests/oracle/any_order.h"
#include "tests/oracle/exhaustive.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;
using namespace rockmate::testing;

namespace {

// Forward a (10 bytes, 3 us) -> b (10, 5) -> loss (1, 1); the backward ops of loss and b read b and a.
TrainingGraph two_values() {
  StepBuilder step;
  const ValueId a = step.op("a", {step.input(1)}, {.bytes = 10, .time_us = 3});
  const ValueId b = step.op("b", {a}, {.bytes = 10, .time_us = 5, .saves_inputs = true});
  step.op("loss", {b}, {.bytes = 1, .time_us = 1, .saves_inputs = true});
  return step.finish();
}

}  // namespace

TEST_CASE("the cheapest cut of a small network") {
  // source -> 2 (5), source -> 3 (3), 2 -> 3 (1), 2 -> sink (3), 3 -> sink (4): 5 + 3 leave, 3 + 4 arrive.
  MinCut cut(4);
  cut.add_edge(MinCut::kSource, 2, 5);
  cut.add_edge(MinCut::kSource, 3, 3);
  cut.add_edge(2, 3, 1);
  cut.add_edge(2, MinCut::kSink, 3);
  cut.add_edge(3, MinCut::kSink, 4);
  CHECK(cut.solve() == 7);
  CHECK(cut.in_source_side(2));
  MinCut none(3);
  none.add_edge(MinCut::kSource, 2, MinCut::kUncut);
  none.add_edge(2, MinCut::kSink, MinCut::kUncut);
  CHECK(none.solve() >= MinCut::kUncut);
}

TEST_CASE("the bound counts what is run again for want of room") {
  // While the loss's backward runs: loss 1, its gradient 1, b 10, b's gradient 10 and, or not, a 10: 32 or 22. While b's
  // backward runs: loss 1, b's gradient 10, a 10, a's gradient 10: 31. Below 32, a (3 us) runs again; below 31 nothing can.
  const TrainingGraph graph = two_values();
  CHECK(lower_bound_us(graph, 32) == 0);
  // Nine of a's ten bytes fit: as good as none.
  CHECK(lower_bound_us(graph, 31) == doctest::Approx(3).epsilon(1e-4));
  CHECK(std::isinf(lower_bound_us(graph, 30)));
  CHECK(peak_floor(graph) == 31);
}

// The bound of every budget from the store-all peak down is at most the oracle's optimum; how much of it, in sum, is returned.
template <typename Oracle>
double share_of_optimum(const std::vector<TrainingGraph>& graphs) {
  double bound_sum = 0, least_sum = 0;
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const TrainingGraph& graph = graphs[i];
    const Bytes peak = judged_plan(graph, store_all_sequence(graph), "")->peak_bytes;
    Oracle oracle(graph);
    for (int percent = 95; percent >= 50; percent -= 5) {
      const Bytes budget = peak * percent / 100;
      const Micros least = oracle.least_recomputation(budget);
      const Micros bound = lower_bound_us(graph, budget);
      CAPTURE(i);
      CAPTURE(budget);
      CHECK(bound <= least);
      if (!std::isfinite(least)) break;  // nor below
      CHECK(peak_floor(graph) <= budget);
      bound_sum += bound;
      least_sum += least;
    }
  }
  return bound_sum / least_sum;
}

TEST_CASE("no bound is above the exhaustive optimum in graph order") {
  std::vector<TrainingGraph> graphs;
  for (unsigned seed = 0; seed < 24; ++seed) graphs.push_back(random_step(3 + static_cast<int>(seed % 4), 500 + seed));
  const double share = share_of_optimum<Exhaustive>(graphs);
  MESSAGE("bound over optimum, summed: " << share);
  CHECK(share > 0.9);
}

TEST_CASE("nor above the optimum over all orders of the backward pass") {
  std::vector<TrainingGraph> graphs;
  for (unsigned seed = 0; seed < 30; ++seed) graphs.push_back(random_step(3 + static_cast<int>(seed % 2), 800 + seed));
  const double share = share_of_optimum<AnyOrder>(graphs);
  MESSAGE("bound over optimum, summed: " << share);
  CHECK(share > 0.9);
}

TEST_CASE("nor above the optimum of graphs in one pass, any op at any time") {
  std::vector<TrainingGraph> graphs;
  for (unsigned seed = 0; seed < 40; ++seed) {
    TrainingGraph graph = random_step(2 + static_cast<int>(seed % 2), 700 + seed);
    graph.has_boundary = false;
    for (Value& value : graph.values) {
      if (value.kind == ValueKind::kTangent) value.kind = ValueKind::kInput;
    }
    graphs.push_back(std::move(graph));
  }
  const double share = share_of_optimum<AnyOrder>(graphs);
  MESSAGE("bound over optimum, summed: " << share);
  CHECK(share > 0.7);
}

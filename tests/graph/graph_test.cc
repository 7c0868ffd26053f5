#include "rockmate/graph/graph.h"

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <stdexcept>

#include "tests/example_graph.h"

using namespace rockmate;

TEST_CASE("the example: pass boundary, readers, charges") {
  using namespace example;
  const TrainingGraph g = graph();
  CHECK_NOTHROW(check_graph(g));
  CHECK(num_forward_ops(g) == 3);
  const auto readers = readers_of(g);
  CHECK(readers[x] == std::vector<OpId>{0, 5});
  CHECK(readers[y] == std::vector<OpId>{2, 4});
  CHECK(readers[dw].empty());
  CHECK(charged_bytes(g.values[x]) == 0);
  CHECK(charged_bytes(g.values[dw]) == 0);
  CHECK(charged_bytes(g.values[dloss]) == 5);
  CHECK(charged_bytes(g.values[h]) == 1000);
}

TEST_CASE("graphs without forward or backward pass are graphs") {
  CHECK_NOTHROW(check_graph(TrainingGraph{}));
  TrainingGraph inference = example::graph();
  inference.ops.resize(3);
  inference.values.resize(6);
  CHECK_NOTHROW(check_graph(inference));
  CHECK(num_forward_ops(inference) == 3);
}

TEST_CASE("check_graph names what is wrong") {
  using namespace example;
  const struct {
    const char* what;
    std::function<void(TrainingGraph&)> spoil;
  } cases[] = {
      {"op 2 'relu' has the name of another op", [](auto& g) { g.ops[2].name = "relu"; }},
      {"op 5 'mm_backward' runs forward but comes after a backward op", [](auto& g) { g.ops[5].pass = Pass::kForward; }},
      {"op 1 'relu' reads value 42, which is not there", [](auto& g) { g.ops[1].inputs = {42}; }},
      {"op 1 'relu' lists its input value 2 'h' twice",
       [](auto& g) {
         g.ops[1].inputs = {h, h};
       }},
      {"op 1 'relu' reads value 3 'y' before it is written", [](auto& g) { g.ops[1].inputs = {y}; }},
      {"op 1 'relu' runs forward and reads the tangent value 5 'dloss'",
       [](auto& g) {
         g.ops[1].inputs = {h, dloss};
       }},
      {"op 1 'relu' writes value -1, which is not there", [](auto& g) { g.ops[1].outputs = {-1}; }},
      {"op 1 'relu' writes value 2 'h', which names another producer",
       [](auto& g) {
         g.ops[1].outputs = {y, h};
       }},
      {"op 1 'relu' lists its output value 3 'y' twice",
       [](auto& g) {
         g.ops[1].outputs = {y, y};
       }},
      {"value 3 'y' is not listed by its producer", [](auto& g) { g.ops[1].outputs.clear(); }},
      {"value 2 'h' has no producer in the graph", [](auto& g) { g.values[h].producer = kNone; }},
      {"value 2 'h' has no producer in the graph", [](auto& g) { g.values[h].producer = 6; }},
      {"value 1 'w' is there before the step (or a tangent), yet an op produces it", [](auto& g) { g.values[w].producer = 0; }},
      {"value 3 'y' has a negative size of -1 bytes", [](auto& g) { g.values[y].bytes = -1; }},
      {"op 1 'relu' has a time that is negative or not finite", [](auto& g) { g.ops[1].time_us = -1; }},
      {"op 1 'relu' has a time that is negative or not finite",
       [](auto& g) { g.ops[1].time_us = std::numeric_limits<double>::quiet_NaN(); }},
      {"op 1 'relu' has a negative workspace", [](auto& g) { g.ops[1].workspace_bytes = -1; }},
      {"the size of a generator state is negative", [](auto& g) { g.rng_state_bytes = -1; }},
  };
  for (const auto& c : cases) {
    TrainingGraph g = graph();
    c.spoil(g);
    const std::string expected =
        std::string("[graph] ") + c.what + ": the graph was edited or badly made, capture or generate it again";
    CHECK_THROWS_WITH_AS(check_graph(g), expected.c_str(), std::invalid_argument);
  }
}

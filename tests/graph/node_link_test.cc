#include "rockmate/graph/node_link.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "rockmate/graph/json.h"
#include "rockmate/schedule/simulator.h"

using namespace rockmate;

namespace {

// conv -> act -> loss -> grad, grad reads act too; given out of order, and with a name twice.
const std::string kText = R"({"directed": true, "multigraph": false, "graph": {"name": "tiny"},
  "nodes": [{"id": 7, "name": "conv", "backward": false, "cost_cpu": 5, "cost_ram": 100},
            {"id": 9, "name": "loss", "backward": false, "cost_cpu": 1, "cost_ram": 4},
            {"id": 8, "name": "act", "backward": false, "cost_cpu": 2, "cost_ram": 80},
            {"id": 3, "name": "act", "backward": true, "cost_cpu": 3, "cost_ram": 60}],
  "links": [{"source": 7, "target": 8}, {"source": 8, "target": 9}, {"source": 9, "target": 3}, {"source": 8, "target": 3}]})";

std::string with(const std::string& from, const std::string& to) {
  std::string text = kText;
  text.replace(text.find(from), from.size(), to);
  return text;
}

}  // namespace

TEST_CASE("a node-link graph becomes a graph in one pass") {
  const TrainingGraph graph = graph_from_node_link(kText);
  CHECK(graph.name == "tiny");
  CHECK_FALSE(graph.has_boundary);
  REQUIRE(graph.num_ops() == 4);
  CHECK(graph.ops[0].name == "conv");
  CHECK(graph.ops[1].name == "act");  // before loss, which reads it
  CHECK(graph.ops[3].name == "act#3");
  CHECK(graph.ops[3].pass == Pass::kBackward);
  CHECK(graph.values.back().retention == Retention::kUntilStepEnd);
  // conv 100, act 100 + 80, loss 80 + 4, grad 80 + 4 + 60.
  const Simulation plain = simulate(graph, schedule_from_sequence(graph, store_all_sequence(graph)));
  CHECK(plain.peak_bytes == 180);
  CHECK(plain.time_us == 11);
  // Any op may run again, forward and backward marks or not.
  const Simulation again = simulate(graph, schedule_from_sequence(graph, {0, 1, 2, 0, 1, 3}));
  CHECK(again.num_recomputed == 2);
  CHECK(graph_to_json(graph_from_json(graph_to_json(graph))) == graph_to_json(graph));
  REQUIRE(with_boundary(graph));
  CHECK(num_forward_ops(*with_boundary(graph)) == 3);
}

TEST_CASE("bad node-link files are refused with the place") {
  const auto refuses = [](const std::string& text, const char* what) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(graph_from_node_link(text), doctest::Contains(what), std::invalid_argument);
  };
  refuses("[]", "node-link");
  refuses("{\"nodes\": 3}", "nodes");
  refuses("{", "[import]");
  refuses(with("\"cost_ram\": 80", "\"cost_ram\": -80"), "nodes[2].cost_ram");
  refuses(with("\"cost_cpu\": 5", "\"cost_cpu\": \"x\""), "nodes[0].cost_cpu");
  refuses(with("\"id\": 9", "\"id\": 7"), "nodes[1].id");
  refuses(with("\"source\": 9, \"target\": 3", "\"source\": 9, \"target\": 44"), "links[2].target");
  refuses(with("\"source\": 7, \"target\": 8", "\"source\": 3, \"target\": 8"), "circle");
  refuses(with("\"directed\": true", "\"directed\": false"), "undirected");
}

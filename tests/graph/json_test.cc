#include "rockmate/graph/json.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <stdexcept>

#include "rockmate/graph/file.h"
#include "tests/example_graph.h"

using namespace rockmate;

namespace {

// No field at its default, and times that have no short decimal.
TrainingGraph every_field() {
  TrainingGraph g = example::graph();
  g.name = "naïve \"quoted\" \n name";
  g.rng_state_bytes = 5056;
  g.values[example::h].retention = Retention::kUntilForwardEnd;
  g.values[example::w].kind = ValueKind::kBuffer;
  g.values[example::x].kind = ValueKind::kConstant;
  g.values[example::y].bytes = Bytes{1} << 62;
  Op& op = g.ops[1];
  op.signature = "relu(f32[2,3])";
  op.module = "transformer.h.0.mlp";
  op.time_us = 0.1 + 0.2;
  op.workspace_bytes = 123456789012345;
  op.flops = 1e300 / 3;
  op.moved_bytes = 77;
  op.dtype = "bfloat16";
  op.is_random = true;
  op.recomputable = false;
  return g;
}

void check_equal(const TrainingGraph& a, const TrainingGraph& b) {
  CHECK(a.name == b.name);
  CHECK(a.device == b.device);
  CHECK(a.rng_state_bytes == b.rng_state_bytes);
  REQUIRE(a.values.size() == b.values.size());
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const Value &v = a.values[i], &w = b.values[i];
    CHECK(std::tie(v.name, v.bytes, v.kind, v.retention, v.producer) ==
          std::tie(w.name, w.bytes, w.kind, w.retention, w.producer));
  }
  REQUIRE(a.ops.size() == b.ops.size());
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    const Op &o = a.ops[i], &p = b.ops[i];
    CHECK(std::tie(o.name, o.target, o.signature, o.module, o.pass, o.inputs, o.outputs, o.time_us, o.workspace_bytes, o.flops,
                   o.moved_bytes, o.dtype, o.is_random, o.recomputable) ==
          std::tie(p.name, p.target, p.signature, p.module, p.pass, p.inputs, p.outputs, p.time_us, p.workspace_bytes, p.flops,
                   p.moved_bytes, p.dtype, p.is_random, p.recomputable));
  }
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

std::string message_of(const std::string& text) {
  try {
    graph_from_json(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a graph survives the round trip, every field and every bit of a time") {
  check_equal(graph_from_json(graph_to_json(every_field())), every_field());
  check_equal(graph_from_json(graph_to_json(TrainingGraph{})), TrainingGraph{});
}

TEST_CASE("a corrupt graph is refused with the place and the trouble") {
  const std::string good = graph_to_json(example::graph());
  const struct {
    const char *what, *by, *message;
  } cases[] = {
      {"\"version\": 1", "\"version\": 2",
       "[graph] the file has version 2, this program reads version 1: write the file again, or update rockmate"},
      {"rockmate-graph", "rockmate-schedule",
       "[graph] this is no rockmate-graph file: it must be an object with \"format\": \"rockmate-graph\""},
      {"\"bytes\":1000", "\"bytes\":\"1000\"", "[graph] values[2].bytes: expected a whole number, found string"},
      {"\"bytes\":1000", "\"bytes\":1e3", "[graph] values[2].bytes: expected a whole number, found number"},
      {"\"bytes\":1000", "\"bytes\":9223372036854775808",
       "[graph] values[2].bytes: the number 9223372036854775808 is out of range"},
      {"\"time_us\":8.0", "\"time_us\":null", "[graph] ops[0].time_us: expected a finite number, found null"},
      {"\"kind\":\"tangent\"", "\"kind\":\"cotangent\"",
       "[graph] values[5].kind: 'cotangent' is none of parameter, buffer, input, constant, tangent, activation, gradient, "
       "parameter_gradient"},
      {"\"time_us\":8.0", "\"time\":8.0", "[graph] ops[0]: unknown field 'time'"},
      {"\"inputs\":[0,1]", "\"inputs\":[0,true]", "[graph] ops[0].inputs[1]: expected a whole number, found boolean"},
      {"\"values\"", "\"value\"", "[graph] the field 'values' is missing"},
      {"\"inputs\":[0,1]", "\"inputs\":[0,9]",
       "[graph] op 0 'mm' reads value 9, which is not there: the graph was edited or badly made, capture or generate it again"},
  };
  for (const auto& c : cases) CHECK(message_of(replaced(good, c.what, c.by)) == c.message);
}

TEST_CASE("a graph cut short anywhere is refused, never read in part") {
  const std::string good = graph_to_json(example::graph());
  for (std::size_t length = 0; length + 2 < good.size(); length += 7) {
    CHECK(message_of(good.substr(0, length)).starts_with("[graph] this is no JSON, or it was cut short"));
  }
}

TEST_CASE("a file is written whole or not at all") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "rockmate_file_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string path = folder / "graph.json";
  write_file(path, "first");
  write_file(path, graph_to_json(every_field()));
  check_equal(graph_from_json(read_file(path)), every_field());
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);  // no temporary is left
  CHECK_THROWS_AS(write_file(folder / "missing" / "graph.json", "x"), std::invalid_argument);
  CHECK_THROWS_AS(read_file(folder / "missing.json"), std::invalid_argument);
  CHECK_THROWS_AS(read_file(folder), std::invalid_argument);
  CHECK(read_file("/dev/null").empty());
  std::filesystem::remove_all(folder);
}

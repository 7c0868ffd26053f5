// The time line against SequenceMemory, which counts the same by a plain scan, over random edits.
#include "rockmate/solvers/time_line.h"

#include <doctest/doctest.h>

#include <random>

#include "rockmate/graph/file.h"
#include "rockmate/graph/json.h"
#include "rockmate/schedule/schedule.h"
#include "rockmate/solvers/polish.h"
#include "rockmate/solvers/sequence_memory.h"
#include "tests/oracle/exhaustive.h"

using namespace rockmate;

namespace {

TrainingGraph load(const std::string& name) {
  return graph_from_json(read_file(std::string(ROCKMATE_SOURCE_DIR) + "/tests/graphs/" + name + ".json"));
}

// Layers of ops that read from a few layers before, in one pass.
TrainingGraph random_graph(int ops, unsigned seed, bool boundary) {
  std::mt19937 random(seed);
  TrainingGraph graph;
  graph.has_boundary = boundary;
  graph.rng_state_bytes = 3;
  for (int i = 0; i < ops; ++i) {
    Op op;
    op.name = "op" + std::to_string(i);
    op.pass = i < ops / 2 ? Pass::kForward : Pass::kBackward;
    op.time_us = 1 + static_cast<double>(random() % 10);
    op.workspace_bytes = random() % 4 == 0 ? random() % 20 : 0;
    op.is_random = random() % 8 == 0;
    for (int k = 0; k < 3 && i > 0; ++k) {
      const ValueId input = static_cast<ValueId>(i - 1 - random() % std::min(i, 12));
      if (std::find(op.inputs.begin(), op.inputs.end(), input) == op.inputs.end()) op.inputs.push_back(input);
    }
    op.outputs = {i};
    Value value{.name = "v" + std::to_string(i), .bytes = static_cast<Bytes>(random() % 100), .producer = i};
    if (random() % 16 == 0 || i + 1 == ops) value.retention = Retention::kUntilStepEnd;
    if (boundary && i < ops / 2 && random() % 16 == 0) value.retention = Retention::kUntilForwardEnd;
    graph.values.push_back(value);
    graph.ops.push_back(op);
  }
  check_graph(graph);
  return graph;
}

// The highest memory at an instance, which is what SequenceMemory counts; the line has slots between them, never higher.
void check_same(const TrainingGraph& graph, const TimeLine& line) {
  const std::vector<OpId> sequence = line.sequence();
  const SequenceMemory memory(graph, sequence);
  CHECK(line.peak_bytes() == memory.peak_bytes());
  CHECK(line.time_us() == doctest::Approx(sequence_time_us(graph, sequence)));
}

}  // namespace

TEST_CASE("random edits of a time line keep its memory exact") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const TrainingGraph graph = random_graph(40, seed, seed % 2 == 0);
    TimeLine line(graph, store_all_sequence(graph));
    check_same(graph, line);
    std::mt19937 random(seed);
    for (int edit = 0; edit < 300; ++edit) {
      const OpId op = static_cast<OpId>(random() % graph.num_ops());
      const int slot = static_cast<int>(random() % line.num_slots());
      if (random() % 2 == 0) {
        if (line.can_insert(op, slot)) line.insert(op, slot);
      } else if (!line.repeats().empty()) {
        const auto id = line.repeats()[random() % line.repeats().size()];
        if (line.can_erase(id)) line.erase(id);
      }
      if (edit % 100 == 99) line.respread();
      check_same(graph, line);
    }
  }
}

TEST_CASE("polishing never makes a sequence slower or break its budget") {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const TrainingGraph graph = random_graph(60, seed, seed % 2 == 0);
    const std::vector<OpId> start = store_all_sequence(graph);
    const Bytes plain = SequenceMemory(graph, start).peak_bytes();
    for (int percent : {95, 80, 60}) {
      const PolishResult result =
          polish(graph, start, {.budget_bytes = plain * percent / 100, .seconds = 60, .max_rounds = 2000, .seed = seed});
      const SequenceMemory memory(graph, result.sequence);
      CHECK(result.peak_bytes == memory.peak_bytes());
      CHECK(result.peak_bytes <= plain);
      CHECK_NOTHROW(schedule_from_sequence(graph, result.sequence));
    }
  }
}

TEST_CASE("polishing finds the optimum of chain4") {
  const TrainingGraph graph = load("chain4");
  for (Bytes budget : {504, 404, 304}) {
    const PolishResult found =
        polish(graph, store_all_sequence(graph), {.budget_bytes = budget, .seconds = 60, .max_rounds = 3000});
    CHECK(found.peak_bytes <= budget);
    CHECK(found.time_us == 10 + testing::Exhaustive(graph).least_recomputation(budget));
  }
}

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
#include "tests/solvers/random_graph.h"

using namespace rockmate;

namespace {

TrainingGraph load(const std::string& name) {
  return graph_from_json(read_file(std::string(ROCKMATE_SOURCE_DIR) + "/tests/graphs/" + name + ".json"));
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
    const TrainingGraph graph = testing::random_graph(40, seed, seed % 2 == 0);
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
    const TrainingGraph graph = testing::random_graph(60, seed, seed % 2 == 0);
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

#include "rockmate/solvers/anneal.h"

#include <doctest/doctest.h>

#include "rockmate/graph/file.h"
#include "rockmate/graph/json.h"
#include "rockmate/schedule/schedule.h"
#include "rockmate/schedule/verifier.h"
#include "rockmate/solvers/sequence_memory.h"
#include "tests/oracle/exhaustive.h"
#include "tests/solvers/random_graph.h"

using namespace rockmate;

TEST_CASE("annealing on the excess keeps every sequence one that can run, and tells its peak and time") {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const TrainingGraph graph = testing::random_graph(60, seed, seed % 2 == 0);
    const std::vector<OpId> start = store_all_sequence(graph);
    const Bytes plain = SequenceMemory(graph, start).peak_bytes();
    for (int percent : {100, 90, 60}) {
      const AnnealResult result =
          anneal(graph, start, {.budget_bytes = plain * percent / 100, .seconds = 60, .max_trials = 20'000, .seed = seed});
      CHECK(result.peak_bytes == SequenceMemory(graph, result.sequence).peak_bytes());
      CHECK(result.time_us == doctest::Approx(sequence_time_us(graph, result.sequence)));
      CHECK(!verify(graph, schedule_from_sequence(graph, result.sequence)).has_value());
      if (percent == 100) CHECK(result.time_us <= sequence_time_us(graph, start) + 1e-6);
    }
  }
}

TEST_CASE("annealing on the excess finds the optimum of chain4 from the plain order") {
  const TrainingGraph graph = graph_from_json(read_file(std::string(ROCKMATE_SOURCE_DIR) + "/tests/graphs/chain4.json"));
  for (Bytes budget : {504, 404, 304}) {
    const AnnealResult found =
        anneal(graph, store_all_sequence(graph), {.budget_bytes = budget, .seconds = 60, .max_trials = 40'000});
    CHECK(found.peak_bytes <= budget);
    CHECK(found.time_us == 10 + testing::Exhaustive(graph).least_recomputation(budget));
  }
}

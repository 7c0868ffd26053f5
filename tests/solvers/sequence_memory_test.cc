#include "rockmate/solvers/sequence_memory.h"

#include <doctest/doctest.h>

#include "rockmate/schedule/schedule.h"
#include "rockmate/schedule/simulator.h"
#include "tests/example_graph.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;
using namespace rockmate::testing;

TEST_CASE("bytes inside each position of the example") {
  // mm: h 1000. relu: h, y 1100. sum: y, loss 104. Then loss stays: expand_copy: y, loss, dloss 5, dy 20 = 129;
  // relu_backward: y, loss, dy, dh 30 = 154; mm_backward: loss, dh = 34.
  const TrainingGraph graph = example::graph();
  const SequenceMemory memory(graph, store_all_sequence(graph));
  CHECK(memory.inside() == std::vector<Bytes>{1000, 1100, 104, 129, 154, 34});
  CHECK(memory.peak_bytes() == 1100);
  CHECK(memory.peak_position() == 1);
  CHECK(memory.kept_bytes() == 104);
  CHECK(memory.max_inside(2, 5) == 154);
}

TEST_CASE("the solvers' count agrees with the simulator") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    TrainingGraph graph = random_step(12, seed);
    graph.rng_state_bytes = 3;
    for (Op& op : graph.ops) op.is_random = op.pass == Pass::kForward && op.time_us > 3;
    const OpId num_forward = num_forward_ops(graph);
    std::vector<OpId> sequence = store_all_sequence(graph);
    // Recompute some chains before some backward ops.
    for (OpId op = 0; op < num_forward; ++op) {
      if ((op + seed) % 3 != 0) continue;
      const std::size_t at = static_cast<std::size_t>(num_forward) + (op * 7 + seed) % (sequence.size() - num_forward);
      sequence.insert(sequence.begin() + static_cast<long>(at), op);
    }
    const Simulation simulation = simulate(graph, schedule_from_sequence(graph, sequence));
    const SequenceMemory memory(graph, sequence);
    CHECK(memory.peak_bytes() == simulation.peak_bytes);
    CHECK(sequence_time_us(graph, sequence) == doctest::Approx(simulation.time_us));
  }
}

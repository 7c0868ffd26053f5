#include "rockmate/schedule/simulator.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "tests/example_graph.h"

using namespace rockmate;
using namespace example;

namespace {
constexpr auto C = &Action::compute;
constexpr auto F = &Action::free;
using Trace = std::vector<Bytes>;
}  // namespace

TEST_CASE("store-all: the whole trace") {
  const Simulation s = simulate(graph(), schedule_from_sequence(graph(), store_all_sequence(graph())));
  // compute mm     1000                      h
  // compute relu   1000 + 100                h y
  // free h         1100 before,  100 after   y
  // compute sum     100 + 4                  y loss
  // --- the tangent of 5 appears: 109
  // compute expand  109 + 20                 y loss dloss dy
  // free dloss      129 before,  124 after   y loss dy
  // compute relu_b  124 + 30                 y loss dy dh
  // free dy, y      154, 134 before          loss dh after: 34
  // compute mm_b     34 + 0                  dw is not charged
  // free dh          34 before, 4 after      loss
  CHECK(s.bytes_inside == Trace{1000, 1100, 1100, 104, 129, 129, 154, 154, 134, 34, 34});
  CHECK(s.bytes_after == Trace{1000, 1100, 100, 104, 129, 124, 154, 134, 34, 34, 4});
  CHECK(s.peak_bytes == 1100);
  CHECK(s.peak_action == 1);
  CHECK(s.time_us == 20);  // 8 + 1 + 1 + 1 + 1 + 8
  CHECK(s.recompute_time_us == 0);
  CHECK(s.num_recomputed == 0);
  CHECK(s.overhead() == 0);
}

TEST_CASE("a recomputation costs its time and holds its input longer") {
  const Simulation s = simulate(graph(), schedule_from_sequence(graph(), {0, 1, 2, 3, 1, 4, 5}));
  // h (1000) now lives until relu runs again: sum 1000 + 100 + 4, free y, expand 1004 + 5 + 20, relu again 1024 + 100, ...
  CHECK(s.bytes_inside == Trace{1000, 1100, 1104, 1104, 1029, 1029, 1124, 1124, 154, 154, 134, 34, 34});
  CHECK(s.peak_bytes == 1124);
  CHECK(s.peak_action == 6);
  CHECK(s.time_us == 21);
  CHECK(s.recompute_time_us == 1);
  CHECK(s.num_recomputed == 1);
  CHECK(s.overhead() == doctest::Approx(1.0 / 20));
}

TEST_CASE("workspace is held inside the op only") {
  TrainingGraph g = graph();
  g.ops[1].workspace_bytes = 5000;
  const Simulation s = simulate(g, schedule_from_sequence(g, store_all_sequence(g)));
  CHECK(s.bytes_inside[1] == 1000 + 100 + 5000);
  CHECK(s.bytes_after[1] == 1000 + 100);
  CHECK(s.peak_bytes == 6100);
}

TEST_CASE("an output that is alive already is allocated a second time while the op runs") {
  TrainingGraph g = graph();
  g.values.push_back({"mask", 10000, ValueKind::kActivation, Retention::kUntilLastUse, 1});
  const ValueId mask = g.num_values() - 1;
  g.ops[1].outputs.push_back(mask);
  g.ops[5].inputs.push_back(mask);                  // the first mask stays alive, y is dropped and computed again
  const Schedule schedule{{C(0), C(1), C(2), F(y),  //
                           C(3), F(dloss), C(1), F(h), C(4), F(dy), F(y), C(5), F(dh), F(mask)},
                          4};
  const Simulation s = simulate(g, schedule);
  CHECK(s.bytes_inside[1] == 1000 + 100 + 10000);
  CHECK(s.bytes_after[5] == 1000 + 10000 + 4 + 20);            // h mask loss dy
  CHECK(s.bytes_inside[6] == s.bytes_after[5] + 100 + 10000);  // y and a second mask
  CHECK(s.bytes_after[6] == s.bytes_after[5] + 100);           // the second mask is dropped
  CHECK(s.bytes_after.back() == 4);
}

TEST_CASE("a random op that runs again holds its generator state from its first run to its last") {
  TrainingGraph g = graph();
  g.rng_state_bytes = 100000;
  g.ops[1].is_random = true;

  SUBCASE("no state is saved when it runs once") {
    CHECK(simulate(g, schedule_from_sequence(g, store_all_sequence(g))).peak_bytes == 1100);
  }
  SUBCASE("one while it runs again") {
    const Simulation s = simulate(g, schedule_from_sequence(g, {0, 1, 2, 3, 1, 4, 5}));
    // The plain trace is 1000, 1100, 1104, 1104, 1029, 1029, 1124, 1124, 154, ...; from action 1 to 6 one state is held, and
    // in action 6 the stream's own state is set aside, one more.
    CHECK(s.bytes_inside == Trace{1000, 101100, 101104, 101104, 101029, 101029, 201124, 1124, 154, 154, 134, 34, 34});
    CHECK(s.bytes_after[1] == 101100);
    CHECK(s.bytes_after[6] == 1124);
  }
  SUBCASE("the same state serves a second recomputation") {
    // 0 1 2 | 3 1 1 4 5: the second y replaces the first at once.
    const Simulation s = simulate(g, schedule_from_sequence(g, {0, 1, 2, 3, 1, 1, 4, 5}));
    // C0 C1 C2 Fy | C3 Fdloss C1 Fy C1 Fh ...: actions 6 and 8 are the recomputations.
    CHECK(s.bytes_inside[6] == 201124);
    CHECK(s.bytes_after[6] == 101124);
    CHECK(s.bytes_inside[8] == 201124);
    CHECK(s.bytes_after[8] == 1124);
    CHECK(s.num_recomputed == 2);
  }
}

TEST_CASE("values that leave the step are held to its end") {
  TrainingGraph g = graph();
  g.values[y].retention = Retention::kUntilStepEnd;
  const Simulation s = simulate(g, schedule_from_sequence(g, store_all_sequence(g)));
  CHECK(s.bytes_after.back() == 100 + 4);
}

TEST_CASE("tangents are charged from the start of the backward pass, read or not") {
  TrainingGraph g = graph();
  g.ops[3].inputs.clear();
  g.ops[3].workspace_bytes = 1;
  const Simulation s = simulate(g, schedule_from_sequence(g, store_all_sequence(g)));
  CHECK(s.bytes_after[3] == 104);   // sum, the last action of the forward pass
  CHECK(s.bytes_inside[4] == 109);  // free dloss
  CHECK(s.bytes_after[4] == 104);
}

TEST_CASE("who holds the memory") {
  const Schedule schedule = schedule_from_sequence(graph(), {0, 1, 2, 3, 1, 4, 5});
  // While relu runs again: h 1000, y 100, dy 20, loss 4; neither x, w (resident) nor dw (not charged).
  CHECK(alive_at(graph(), schedule, 6) == std::vector<ValueId>{h, y, dy, loss});
  CHECK(alive_at(graph(), schedule, 7) == std::vector<ValueId>{h, y, dy, loss});  // free h: before it
  CHECK(alive_at(graph(), schedule, 12) == std::vector<ValueId>{dh, loss});
  CHECK_THROWS_AS(alive_at(graph(), schedule, 13), std::invalid_argument);
}

TEST_CASE("a schedule that the verifier refuses is not simulated") {
  CHECK_THROWS_WITH_AS(simulate(graph(), {{C(1)}, 1}),
                       "[simulate] the schedule is no training step of this graph, plan it again. [verify] action 0, compute "
                       "aten.relu 'relu': input 'h' is not alive",
                       std::invalid_argument);
}

TEST_CASE("an empty step costs nothing") {
  const Simulation s = simulate(TrainingGraph{}, Schedule{});
  CHECK(s.peak_bytes == 0);
  CHECK(s.overhead() == 0);
}

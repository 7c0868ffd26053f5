#include <doctest/doctest.h>

#include <stdexcept>

#include "rockmate/schedule/schedule.h"
#include "tests/example_graph.h"

using namespace rockmate;

namespace {
constexpr auto C = &Action::compute;
constexpr auto F = &Action::free;
}  // namespace

TEST_CASE("store-all frees each value right after its last reader") {
  using namespace example;
  const Schedule schedule = schedule_from_sequence(graph(), store_all_sequence(graph()));
  // h is read by op 1 only, y by ops 2 and 4; dloss is a tangent; loss and dw stay with the user.
  CHECK(schedule.actions == std::vector<Action>{C(0), C(1), F(h), C(2),  //
                                                C(3), F(dloss), C(4), F(dy), F(y), C(5), F(dh)});
  CHECK(schedule.forward_end == 4);
}

TEST_CASE("a recomputed value dies in between and its input lives until the recomputation") {
  using namespace example;
  const Schedule schedule = schedule_from_sequence(graph(), {0, 1, 2, 3, 1, 4, 5});
  CHECK(schedule.actions == std::vector<Action>{C(0), C(1), C(2), F(y),  //
                                                C(3), F(dloss), C(1), F(h), C(4), F(dy), F(y), C(5), F(dh)});
  CHECK(schedule.forward_end == 4);
}

TEST_CASE("a value kept until the forward pass ends is freed as its last action") {
  using namespace example;
  TrainingGraph g = graph();
  g.values[h].retention = Retention::kUntilForwardEnd;
  const Schedule schedule = schedule_from_sequence(g, store_all_sequence(g));
  CHECK(schedule.actions[3] == F(h));
  CHECK(schedule.forward_end == 4);
  // Recomputed after the forward pass it is an ordinary value: the second h dies right after its reader, op 1.
  const Schedule again = schedule_from_sequence(g, {0, 1, 2, 3, 0, 1, 4, 5});
  CHECK(again.actions == std::vector<Action>{C(0), C(1), C(2), F(y), F(h),  //
                                             C(3), F(dloss), C(0), C(1), F(h), C(4), F(dy), F(y), C(5), F(dh)});
}

TEST_CASE("an unread output dies at once, an unread tangent when the backward pass begins") {
  using namespace example;
  TrainingGraph g = graph();
  g.ops[3].inputs.clear();  // dloss has no reader
  g.ops[2].inputs = {h};    // y is read by op 4 alone, and recomputed for it: the first y has no reader
  const Schedule schedule = schedule_from_sequence(g, {0, 1, 2, 3, 1, 4, 5});
  CHECK(schedule.actions == std::vector<Action>{C(0), C(1), F(y), C(2),  //
                                                F(dloss), C(3), C(1), F(h), C(4), F(dy), F(y), C(5), F(dh)});
}

TEST_CASE("a sequence that can't run is refused") {
  using namespace example;
  CHECK_THROWS_AS(schedule_from_sequence(graph(), {0, 1}), std::invalid_argument);
  CHECK_THROWS_AS(schedule_from_sequence(graph(), {0, 2, 1, 3, 4, 5}), std::invalid_argument);
  CHECK_THROWS_AS(schedule_from_sequence(graph(), {0, 1, 2, 4, 3, 5}), std::invalid_argument);  // dy is not there yet
  CHECK_THROWS_AS(schedule_from_sequence(graph(), {0, 1, 2, 3, 4, 99}), std::invalid_argument);
}

TEST_CASE("recomputations that nothing reads are dropped, and those that only they needed") {
  using namespace example;
  // The second 0 serves the second 1, whose y is replaced by the third 1 before op 4 reads it.
  CHECK(without_dead_recomputations(graph(), {0, 1, 2, 3, 0, 1, 1, 4, 5}) == std::vector<OpId>{0, 1, 2, 3, 0, 1, 4, 5});
  CHECK(without_dead_recomputations(graph(), {0, 1, 2, 3, 4, 0, 1, 5}) == std::vector<OpId>{0, 1, 2, 3, 4, 5});
  // loss stays alive for the user: computing it again serves nobody, although nothing else keeps it.
  CHECK(without_dead_recomputations(graph(), {0, 1, 2, 3, 2, 4, 5}) == std::vector<OpId>{0, 1, 2, 3, 4, 5});
}

#include "rockmate/schedule/verifier.h"

#include <doctest/doctest.h>

#include "tests/example_graph.h"

using namespace rockmate;
using namespace example;

namespace {

constexpr auto C = &Action::compute;
constexpr auto F = &Action::free;

// The recomputing schedule of schedule.h: good as it stands; each case below spoils it in one way.
Schedule good() { return {{C(0), C(1), C(2), F(y), C(3), F(dloss), C(1), F(h), C(4), F(dy), F(y), C(5), F(dh)}, 4}; }

struct Case {
  const char* what;
  Schedule schedule;
  ScheduleError error;
  std::size_t action;
};

Schedule with(std::size_t at, Action action) {
  Schedule schedule = good();
  schedule.actions[at] = action;
  return schedule;
}

Schedule without(std::size_t at) {
  Schedule schedule = good();
  schedule.actions.erase(schedule.actions.begin() + static_cast<std::ptrdiff_t>(at));
  if (at < schedule.forward_end) --schedule.forward_end;
  return schedule;
}

Schedule inserted(std::size_t at, Action action) {
  Schedule schedule = good();
  schedule.actions.insert(schedule.actions.begin() + static_cast<std::ptrdiff_t>(at), action);
  if (at < schedule.forward_end) ++schedule.forward_end;
  return schedule;
}

}  // namespace

TEST_CASE("good schedules pass") {
  CHECK_FALSE(verify(graph(), good()).has_value());
  CHECK_FALSE(verify(graph(), schedule_from_sequence(graph(), store_all_sequence(graph()))).has_value());
  CHECK_FALSE(verify(TrainingGraph{}, Schedule{}).has_value());
}

TEST_CASE("each kind of fault is named where it happens") {
  using E = ScheduleError;
  Schedule late_end = good();
  late_end.forward_end = 14;
  Schedule no_backward = good();
  no_backward.actions.resize(4);
  const Case cases[] = {
      {"an op that is not there", with(4, C(6)), E::kBadId, 4},
      {"a value that is not there", with(5, F(-1)), E::kBadId, 5},
      {"a forward end beyond the actions", late_end, E::kBadId, 0},
      {"dy is there, y is not", without(6), E::kInputNotAlive, 7},
      {"h is freed before it is read", inserted(1, F(h)), E::kInputNotAlive, 2},
      {"y is freed twice", inserted(4, F(y)), E::kFreeNotAlive, 4},
      {"an input is freed", inserted(12, F(x)), E::kFreeNotAlive, 12},
      {"a tangent is freed before it appears", inserted(2, F(dloss)), E::kFreeNotAlive, 2},
      {"the loss is freed", inserted(3, F(loss)), E::kFreedTooEarly, 3},
      {"relu runs twice in the forward pass", inserted(2, C(1)), E::kForwardOpCount, 2},
      {"sum is missing, the forward pass ends at 3", without(2), E::kForwardOpCount, 3},
      {"a backward op in the forward pass", inserted(3, C(3)), E::kBackwardInForward, 3},
      {"a backward op runs twice", inserted(5, C(3)), E::kBackwardOpCount, 5},
      {"the last backward op is missing", without(11), E::kBackwardOpCount, 12},
      {"no backward op at all", no_backward, E::kBackwardOpCount, 4},
      {"h is left alive", without(7), E::kLeftAlive, 12},
      {"the tangent is left alive", without(5), E::kLeftAlive, 12},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const auto fault = verify(graph(), c.schedule);
    REQUIRE(fault.has_value());
    CAPTURE(fault->message);
    CHECK(fault->error == c.error);
    CHECK(fault->action == c.action);
    CHECK(fault->message.starts_with("[verify] "));
  }
}

TEST_CASE("the message names the action, the op and the input") {
  CHECK(verify(graph(), without(6))->message ==
        "[verify] action 7, compute aten.relu_backward 'relu_backward': input 'y' is not alive");
}

TEST_CASE("forward ops keep graph order even where they don't depend on each other") {
  TrainingGraph g = graph();
  g.ops[1].inputs = {x};  // relu and mm are now free to swap, but must not
  const auto fault = verify(g, {{C(1), C(0)}, 2});
  REQUIRE(fault.has_value());
  CHECK(fault->error == ScheduleError::kForwardOrder);
  CHECK(fault->action == 1);
}

TEST_CASE("an op with side effects runs once") {
  TrainingGraph g = graph();
  g.ops[1].recomputable = false;
  CHECK(verify(g, good())->error == ScheduleError::kNotRecomputable);
}

TEST_CASE("random ops of the backward pass keep their order, others need not") {
  TrainingGraph g = graph();
  g.ops[4].inputs = {y};  // ops 3 and 4 no longer depend on each other
  const Schedule swapped = schedule_from_sequence(g, {0, 1, 2, 4, 3, 5});
  CHECK_FALSE(verify(g, swapped).has_value());
  g.ops[3].is_random = g.ops[4].is_random = true;
  CHECK(verify(g, swapped)->error == ScheduleError::kRandomOrder);
}

TEST_CASE("what leaves the forward pass stays until all of it has run") {
  TrainingGraph g = graph();
  g.values[h].retention = Retention::kUntilForwardEnd;
  CHECK(verify(g, {{C(0), C(1), F(h), C(2), C(3), F(dloss), C(4), F(dy), F(y), C(5), F(dh)}, 4})->error ==
        ScheduleError::kFreedTooEarly);
  CHECK_FALSE(verify(g, {{C(0), C(1), C(2), F(h), C(3), F(dloss), C(4), F(dy), F(y), C(5), F(dh)}, 4}).has_value());
}

#include "rockmate/schedule/json.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "tests/example_graph.h"

using namespace rockmate;

TEST_CASE("a schedule survives the round trip") {
  const Schedule schedule = schedule_from_sequence(example::graph(), {0, 1, 2, 3, 1, 4, 5});
  const Schedule again = schedule_from_json(schedule_to_json(schedule));
  CHECK(again.actions == schedule.actions);
  CHECK(again.forward_end == schedule.forward_end);
  CHECK(schedule_from_json(schedule_to_json(Schedule{})).actions.empty());
}

TEST_CASE("a corrupt schedule is refused with the place and the trouble") {
  const std::string head = R"({"format": "rockmate-schedule", "version": 1, )";
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {head + R"("forward_end": 0, "actions": [["compute", 0], ["drop", 1]]})",
       "[schedule] actions[1]: 'drop' is neither compute nor free"},
      {head + R"("forward_end": 0, "actions": [["compute"]]})",
       "[schedule] actions[0]: expected [\"compute\" or \"free\", id]"},
      {head + R"("forward_end": 0, "actions": [["compute", -1]]})", "[schedule] actions[0][1]: the number -1 is out of range"},
      {head + R"("forward_end": 2, "actions": [["compute", 0]]})",
       "[schedule] forward_end: expected a number of actions, 0 to 1"},
      {head + R"("actions": []})", "[schedule] forward_end: expected a number of actions, 0 to 0"},
      {head + R"("forward_end": 0})", "[schedule] the field 'actions' is missing"},
      {"[]", "[schedule] this is no rockmate-schedule file: it must be an object with \"format\": \"rockmate-schedule\""},
  };
  for (const auto& c : cases) CHECK_THROWS_WITH_AS(schedule_from_json(c.text), c.message, std::invalid_argument);
}

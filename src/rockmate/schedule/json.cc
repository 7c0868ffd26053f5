#include "rockmate/schedule/json.h"

#include <limits>

#include "rockmate/graph/json_reader.h"

namespace rockmate {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "rockmate-schedule";
constexpr int kVersion = 1;
constexpr std::int32_t kHighestId = std::numeric_limits<std::int32_t>::max();

Action action_from(const json& pair, const JsonPlace& place) {
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string()) place.fail("expected [\"compute\" or \"free\", id]");
  const std::string kind = pair[0].get<std::string>();
  if (kind != "compute" && kind != "free") place.fail("'" + kind + "' is neither compute nor free");
  const auto id = static_cast<std::int32_t>(json_integer(pair[1], place.at(1), 0, kHighestId));
  return kind == "compute" ? Action::compute(id) : Action::free(id);
}

}  // namespace

std::string schedule_to_json(const Schedule& schedule) {
  std::string text = std::string("{\"format\": \"") + kFormat + "\", \"version\": " + std::to_string(kVersion) +
                     ", \"forward_end\": " + std::to_string(schedule.forward_end) + ",\n \"actions\": [";
  for (std::size_t i = 0; i < schedule.actions.size(); ++i) {
    const Action& action = schedule.actions[i];
    const bool compute = action.kind == Action::Kind::kCompute;
    // A compute begins a line and its frees follow on it.
    text += i == 0 ? "\n  " : compute ? ",\n  " : ", ";
    text += (compute ? "[\"compute\", " : "[\"free\", ") + std::to_string(action.id) + "]";
  }
  return text + "]}\n";
}

Schedule schedule_from_json(const std::string& text) {
  const json document = parse_document(text, "schedule", kFormat, kVersion);
  const JsonPlace top{"schedule", ""};
  JsonFields fields(document, top);
  Schedule schedule;
  const json& actions = fields.array("actions");
  for (std::size_t i = 0; i < actions.size(); ++i) {
    schedule.actions.push_back(action_from(actions[i], top.in("actions").at(i)));
  }
  std::int64_t forward_end = -1;
  fields.read("forward_end", forward_end);
  if (forward_end < 0 || forward_end > static_cast<std::int64_t>(actions.size())) {
    top.in("forward_end").fail("expected a number of actions, 0 to " + std::to_string(actions.size()));
  }
  schedule.forward_end = static_cast<std::size_t>(forward_end);
  fields.finish();
  return schedule;
}

}  // namespace rockmate

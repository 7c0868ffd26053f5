// A schedule as text: {"format": "rockmate-schedule", "version": 1, "forward_end": 4,
//  "actions": [["compute", 0], ["compute", 1], ["free", 2], ...]}, with op and value ids of the graph it was made for.
#pragma once

#include <string>

#include "rockmate/schedule/schedule.h"

namespace rockmate {

std::string schedule_to_json(const Schedule& schedule);

// Throws std::invalid_argument with the place and the trouble when the text is no schedule of this version. Says nothing about
// any graph: that is the verifier's part.
Schedule schedule_from_json(const std::string& text);

}  // namespace rockmate

// How much of a random search is done, which sets its temperature: by its number of trials, and by the clock only where that is
// well ahead. So a search with time enough for its trials takes the same way every time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rockmate {

inline double share_done(double time_share, std::int64_t trial, std::int64_t max_trials) {
  constexpr double kAhead = 0.05;
  const double trial_share = static_cast<double>(trial) / static_cast<double>(max_trials);
  return std::max(trial_share, (time_share - kAhead) / (1 - kAhead));
}

}  // namespace rockmate

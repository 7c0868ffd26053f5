#include "rockmate/report/texts.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace rockmate {
namespace {

std::string printed(const char* format, double value) {
  std::array<char, 48> text;
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

}  // namespace

std::string percent(double share) { return printed("%.1f%%", 100 * share); }

std::string duration(Micros time_us) {
  if (time_us >= 999.5e3) return printed(time_us >= 1e9 ? "%.0f s" : "%.3g s", time_us / 1e6);
  if (time_us >= 999.5 || time_us == 0) return printed("%.3g ms", time_us / 1e3);
  return printed("%.3g µs", time_us);
}

std::string times(std::int32_t count) { return count == 1 ? "once" : count == 2 ? "twice" : std::to_string(count) + " times"; }

}  // namespace rockmate

// Figures as the report writes them.
#pragma once

#include <cstdint>
#include <string>

#include "rockmate/graph/graph.h"

namespace rockmate {

std::string percent(double share);      // 0.125 -> "12.5%"
std::string duration(Micros time_us);   // three digits: "5.63 s", "12.3 ms", "45 µs"
std::string times(std::int32_t count);  // "once", "twice", "3 times"

}  // namespace rockmate

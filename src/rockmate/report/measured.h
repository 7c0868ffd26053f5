// What a real run of the step measured, to be put beside what the plan predicts. As a file:
//
//   {"format": "rockmate-measured", "version": 1, "note": "two cores, torch 2.13",
//    "peak_bytes": 1124, "time_us": 21.5, "trace": [0, 1000, 1100, ...]}
//
// All but format and version may be left out; peak_bytes is then the most of the trace. The trace holds the bytes after every
// allocation and free, as rockmate.measure_peak records them.
#pragma once

#include <string>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

struct MeasuredStep {
  Bytes peak_bytes = 0;  // 0 where it was not measured
  Micros time_us = 0;    // 0 where it was not measured
  std::vector<Bytes> trace = {};
  std::string note = {};  // where and when, in a sentence
};

// Throws std::invalid_argument ("[measured] trace[3]: ...") when the text is none of that, or holds neither peak nor time.
MeasuredStep measured_from_json(const std::string& text);

}  // namespace rockmate

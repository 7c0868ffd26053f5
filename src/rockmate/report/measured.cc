#include "rockmate/report/measured.h"

#include <algorithm>
#include <cmath>

#include "rockmate/graph/json_reader.h"

namespace rockmate {

MeasuredStep measured_from_json(const std::string& text) {
  const JsonPlace top{"measured", ""};
  const nlohmann::json document = parse_document(text, top.stage, "rockmate-measured", 1);
  JsonFields fields(document, top);
  MeasuredStep step;
  fields.read("peak_bytes", step.peak_bytes);
  fields.read("time_us", step.time_us);
  fields.read("trace", step.trace);
  fields.read("note", step.note);
  fields.finish();
  if (step.peak_bytes == 0 && !step.trace.empty()) step.peak_bytes = *std::max_element(step.trace.begin(), step.trace.end());
  if (step.peak_bytes < 0) top.in("peak_bytes").fail("expected 0 or more bytes");
  if (step.time_us < 0 || !std::isfinite(step.time_us)) top.in("time_us").fail("expected 0 or more microseconds");
  if (step.peak_bytes == 0 && step.time_us == 0) top.fail("nothing was measured: give peak_bytes, trace or time_us");
  return step;
}

}  // namespace rockmate

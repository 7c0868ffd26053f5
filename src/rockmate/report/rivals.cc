#include "rockmate/report/rivals.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rockmate/graph/json_reader.h"
#include "rockmate/planners/planners.h"
#include "rockmate/schedule/budget.h"
#include "rockmate/schedule/simulator.h"

namespace rockmate {
namespace {

using nlohmann::json;

constexpr double kSecondsEach = 1;  // for a planner at a budget: a picture is not worth more

void sort_by_peak(std::vector<CurvePoint>& points) {
  std::sort(points.begin(), points.end(), [](const CurvePoint& a, const CurvePoint& b) {
    return a.peak_bytes != b.peak_bytes ? a.peak_bytes < b.peak_bytes : a.overhead < b.overhead;
  });
  const auto is_same = [](const CurvePoint& a, const CurvePoint& b) { return a.peak_bytes == b.peak_bytes; };
  points.erase(std::unique(points.begin(), points.end(), is_same), points.end());
}

// The array under `key` of a document that says of which store-all peak it is.
const json& rows_of(const json& document, const JsonPlace& top, const std::string& key, Bytes store_all_peak_bytes) {
  if (!document.is_object()) top.fail("expected the object that rockmate " + top.stage + " --json prints");
  const auto peak = document.find("store_all_peak_bytes");
  if (peak == document.end()) top.fail("the field 'store_all_peak_bytes' is missing");
  const Bytes found = json_integer(*peak, top.in("store_all_peak_bytes"), 0, std::numeric_limits<Bytes>::max());
  if (found != store_all_peak_bytes) {
    top.in("store_all_peak_bytes")
        .fail("it is of another graph or of other costs: " + format_bytes(found) +
              " without recomputation, where this graph has " + format_bytes(store_all_peak_bytes) +
              "; make it from this graph file");
  }
  const auto rows = document.find(key);
  if (rows == document.end() || !rows->is_array()) top.in(key).fail("expected an array");
  return *rows;
}

// Of a row only what a picture needs is read; it holds more.
CurvePoint point_from(const json& row, const JsonPlace& place) {
  if (!row.is_object()) place.fail("expected an object");
  CurvePoint point;
  const auto value = [&](const char* key) -> const json& {
    const auto found = row.find(key);
    if (found == row.end()) place.fail(std::string("the field '") + key + "' is missing");
    return *found;
  };
  point.peak_bytes = json_integer(value("peak_bytes"), place.in("peak_bytes"), 0, std::numeric_limits<Bytes>::max());
  const json& overhead = value("overhead");
  if (!overhead.is_number()) place.in("overhead").fail("expected a number");
  point.overhead = overhead.get<double>();
  if (!std::isfinite(point.overhead)) place.in("overhead").fail("expected a finite number");
  const json& planner = value("planner");
  if (!planner.is_string()) place.in("planner").fail("expected text");
  point.planner = planner.get<std::string>();
  return point;
}

}  // namespace

std::vector<PlannerPoints> quick_planner_points(const TrainingGraph& graph, double seconds,
                                                const std::function<bool()>& go_on) {
  const Bytes plain = simulate(graph, schedule_from_sequence(graph, store_all_sequence(graph))).peak_bytes;
  std::vector<PlannerPoints> found;
  PlannerOptions options;
  options.time_limit_s = seconds;
  const PlannerContext all(options);
  const auto quick = std::count_if(planners().begin(), planners().end(), [](const PlannerEntry& p) { return p.is_quick; });
  auto left = quick;
  for (const PlannerEntry& planner : planners()) {
    if (!planner.is_quick) continue;
    // What one planner leaves of its share is the others'.
    const PlannerContext own = all.within(all.seconds_left() / static_cast<double>(left--));
    PlannerPoints its{planner.name, {}};
    for (int tenths = 9; tenths >= 1; --tenths) {
      if (own.expired() || (go_on && !go_on())) break;
      const PlannerResult result =
          run_planner(planner, graph, plain / 10 * tenths, own.within(std::min(own.seconds_left(), kSecondsEach)));
      if (result.plan) its.points.push_back({result.plan->peak_bytes, result.plan->overhead, planner.name});
    }
    sort_by_peak(its.points);
    if (!its.points.empty()) found.push_back(std::move(its));
  }
  return found;
}

std::vector<CurvePoint> curve_from_json(const std::string& text, Bytes store_all_peak_bytes) {
  const JsonPlace top{"curve", ""};
  const json document = parse_json(text, top.stage);
  const json& plans = rows_of(document, top, "plans", store_all_peak_bytes);
  std::vector<CurvePoint> points;
  for (std::size_t i = 0; i < plans.size(); ++i) points.push_back(point_from(plans[i], top.in("plans").at(i)));
  sort_by_peak(points);
  return points;
}

std::vector<PlannerPoints> planner_points_from_json(const std::string& text, Bytes store_all_peak_bytes) {
  const JsonPlace top{"compare", ""};
  const json document = parse_json(text, top.stage);
  const json& results = rows_of(document, top, "results", store_all_peak_bytes);
  std::vector<PlannerPoints> found;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const JsonPlace place = top.in("results").at(i);
    if (results[i].is_object() && results[i].contains("peak_bytes") && results[i]["peak_bytes"].is_null()) continue;
    CurvePoint point = point_from(results[i], place);
    auto its = std::find_if(found.begin(), found.end(), [&](const PlannerPoints& p) { return p.planner == point.planner; });
    if (its == found.end()) its = found.insert(found.end(), {point.planner, {}});
    its->points.push_back(std::move(point));
  }
  for (PlannerPoints& its : found) sort_by_peak(its.points);
  return found;
}

}  // namespace rockmate

#include "rockmate/report/rivals.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "rockmate/report/measured.h"
#include "rockmate/schedule/simulator.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;

TEST_CASE("quick planners reach points within the budgets, and end when asked") {
  const TrainingGraph g = testing::transformer(2);
  const Bytes plain = simulate(g, schedule_from_sequence(g, store_all_sequence(g))).peak_bytes;
  const auto found = quick_planner_points(g, 60);
  CHECK(found.size() >= 4);
  for (const PlannerPoints& its : found) {
    CAPTURE(its.planner);
    Bytes before = 0;
    for (const CurvePoint& point : its.points) {
      CHECK(point.peak_bytes > before);
      CHECK(point.peak_bytes <= plain / 10 * 9);
      CHECK(point.overhead > 0);
      before = point.peak_bytes;
    }
  }
  CHECK(quick_planner_points(g, 60, [] { return false; }).empty());
}

TEST_CASE("curves and comparisons of the command are read back") {
  const auto curve = curve_from_json(
      R"({"store_all_peak_bytes": 504, "plans": [{"peak_bytes": 504, "overhead": 0, "planner": "store-all", "time_us": 9},
          {"peak_bytes": 404, "overhead": 0.1, "planner": "evict"}]})",
      504);
  REQUIRE(curve.size() == 2);
  CHECK(curve[0].peak_bytes == 404);
  CHECK(curve[0].planner == "evict");
  CHECK(curve[1].overhead == 0);

  const auto planners = planner_points_from_json(
      R"({"store_all_peak_bytes": 504, "results": [{"planner": "rotor", "peak_bytes": 450, "overhead": 0.2},
          {"planner": "rotor", "peak_bytes": null, "overhead": null}, {"planner": "dtr", "peak_bytes": 400, "overhead": 0.3},
          {"planner": "rotor", "peak_bytes": 410, "overhead": 0.4}]})",
      504);
  REQUIRE(planners.size() == 2);
  CHECK(planners[0].planner == "rotor");
  REQUIRE(planners[0].points.size() == 2);
  CHECK(planners[0].points[0].peak_bytes == 410);
  CHECK(planners[1].points[0].overhead == 0.3);
}

TEST_CASE("what is no curve, or of another graph, is refused with the place") {
  const auto message_of = [](const std::string& text) {
    try {
      curve_from_json(text, 504);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message_of("{").starts_with("[curve] this is no JSON"));
  CHECK(message_of("[]").starts_with("[curve] expected the object that rockmate curve --json prints"));
  CHECK(message_of("{}") == "[curve] the field 'store_all_peak_bytes' is missing");
  CHECK(message_of(R"({"store_all_peak_bytes": 505, "plans": []})").find("of another graph") != std::string::npos);
  CHECK(message_of(R"({"store_all_peak_bytes": 504})") == "[curve] plans: expected an array");
  CHECK(message_of(R"({"store_all_peak_bytes": 504, "plans": [{}]})") == "[curve] plans[0]: the field 'peak_bytes' is missing");
  CHECK(message_of(R"({"store_all_peak_bytes": 504, "plans": [{"peak_bytes": 4, "overhead": "x", "planner": ""}]})") ==
        "[curve] plans[0].overhead: expected a number");
}

TEST_CASE("measurements") {
  const std::string head = R"({"format": "rockmate-measured", "version": 1)";
  CHECK(measured_from_json(head + R"(, "trace": [0, 7, 3]})").peak_bytes == 7);
  CHECK(measured_from_json(head + R"(, "peak_bytes": 8, "trace": [0, 7, 3]})").peak_bytes == 8);
  CHECK(measured_from_json(head + R"(, "time_us": 8.5, "note": "here"})").time_us == 8.5);
  CHECK_THROWS_WITH_AS(measured_from_json(head + "}"), "[measured] nothing was measured: give peak_bytes, trace or time_us",
                       std::invalid_argument);
  CHECK_THROWS_AS(measured_from_json(head + R"(, "peak_bytes": -1})"), std::invalid_argument);
  CHECK_THROWS_AS(measured_from_json(head + R"(, "peak": 1})"), std::invalid_argument);
  CHECK_THROWS_AS(measured_from_json("{}"), std::invalid_argument);
}

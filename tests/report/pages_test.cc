// The pages are looked at by people; what is held here is that they are whole, escaped and ask nothing of a network.
#include <doctest/doctest.h>

#include <stdexcept>

#include "rockmate/report/chart.h"
#include "rockmate/report/comparison_page.h"
#include "rockmate/report/page.h"
#include "rockmate/report/plan_page.h"
#include "rockmate/report/planner_chart.h"
#include "rockmate/report/planners_page.h"
#include "tests/example_graph.h"

using namespace rockmate;

namespace {

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

// Nothing is loaded; the one address is the name of SVG in the script.
void check_self_contained(const std::string& html) {
  CHECK(html.starts_with("<!doctype html>"));
  CHECK(html.ends_with("</html>\n"));
  CHECK(count(html, "http") == count(html, "http://www.w3.org/2000/svg"));
  CHECK(count(html, "src=") == 0);
  CHECK(count(html, "url(") == 0);
  CHECK(count(html, "<link") == 0);
  for (const char* tag : {"section", "table", "svg", "figure", "details", "div"}) {
    CAPTURE(tag);
    CHECK(count(html, std::string("<") + tag + ">") + count(html, std::string("<") + tag + " ") ==
          count(html, std::string("</") + tag + ">"));
  }
  CHECK(count(html, ",nan") + count(html, "\"nan") + count(html, "inf\"") == 0);
}

}  // namespace

TEST_CASE("a plan's page") {
  TrainingGraph g = example::graph();
  g.name = "<script>alert('&')</script>";
  const Schedule schedule = schedule_from_sequence(g, {0, 1, 2, 3, 1, 4, 5});
  const std::string html =
      plan_page(g, schedule,
                {.budget_bytes = 2000,
                 .curve = {{1000, 0.5, "rockmate"}, {1124, 0.05, "evict"}},
                 .planners = {{"chen-sqrt", {{1124, 0.4}}}},
                 .measured = MeasuredStep{.peak_bytes = 1124, .time_us = 42, .trace = {0, 1000, 1124, 0}, .note = "Here."},
                 .note = "A chain of two blocks."});
  check_self_contained(html);
  CHECK(count(html, "<script>") == 1);  // its own
  CHECK(count(html, "A chain of two blocks.") == 1);
  CHECK(count(html, "<a href=\"#") == count(html, "<section>"));  // each section is linked to
  for (const char* place : {"memory-over-the-step", "predicted-against-measured", "who-holds-the-memory-at-the-peak"}) {
    CAPTURE(place);
    CHECK(count(html, "<a href=\"#" + std::string(place) + "\">") == 1);
    CHECK(count(html, "<div id=\"" + std::string(place) + "\">") == 1);
  }
  CHECK(count(html, ">budget 1.95 KiB<") == 2 * 3);  // in the three sizes of two pictures
  CHECK(count(html, "1.10 KiB") >= 1);               // the peak, 1124 bytes
  CHECK(count(html, "without recomputation") >= 2);
  CHECK(count(html, "class=\"marker\"") == 3);
  CHECK(count(html, "as predicted, to the byte") == 1);
  CHECK(count(html, "<td>equal</td>") == 1);    // the peak
  CHECK(count(html, "<td>+100.0%</td>") == 1);  // 42 µs measured, 21 predicted
  CHECK(count(html, "chen-sqrt</span>") == 1);  // in the legend
  CHECK(count(html, "forward 10 µs") == 3);     // mm 8, relu 1, sum 1
  CHECK(count(html, "backward 11 µs") == 3);    // relu again, then 1 + 1 + 8
}

TEST_CASE("the page of a graph in one pass keeps nothing between passes") {
  TrainingGraph g = example::graph();
  g.has_boundary = false;
  g.values[example::dloss].kind = ValueKind::kInput;
  for (Op& op : g.ops) op.pass = Pass::kBackward;
  const std::string html = plan_page(g, schedule_from_sequence(g, {0, 1, 2, 3, 1, 4, 5}));
  check_self_contained(html);
  CHECK(count(html, ">Kept<") == 0);
  CHECK(count(html, "for the backward pass") == 0);
}

TEST_CASE("plans far above the others do not flatten the picture") {
  PlannerChart chart;
  chart.lines = {{"curve", {{10, 4.0}, {20, 1.5}, {30, 0.1}}}};
  CHECK(count(planner_figure(chart), "2 plans cost more than 100.0%, up to 400.0%: left out of the picture.") == 1);
  chart.chosen = CurvePoint{20, 1.5};  // it must be seen
  CHECK(count(planner_figure(chart), "1 plan costs more than 180.0%, up to 400.0%: left out of the picture.") == 1);
  chart.lines[0].points.erase(chart.lines[0].points.begin());
  CHECK(count(planner_figure(chart), "left out of the picture") == 0);
}

TEST_CASE("planners side by side") {
  PlannersPage page{.title = "Planners on <g>", .store_all_peak_bytes = 1024, .store_all_time_us = 2000};
  page.budgets = {"80%", "50%"};
  page.rows = {{.points = {"dtr", {{800, 0.1}}}, .cells = {"10.00% "}, .plan_seconds = 1.5}, {.points = {"rotor", {}}}};
  page.bounds = {"8.00% ", "-"};
  const std::string html = planners_page(page);
  check_self_contained(html);
  CHECK(count(html, "<tr>") == 4);  // heading, two planners, the bound
  CHECK(count(html, "<polyline") == 3);
  CHECK(count(html, "<td>1.5 s</td>") == 1);
  page.rows.clear();
  check_self_contained(planners_page(page));
}

TEST_CASE("a block for each row, up to sixty rows") {
  TrainingGraph g;
  for (int i = 0; i < 100; ++i) {
    g.values.push_back({"v" + std::to_string(i), 1, ValueKind::kActivation, Retention::kUntilLastUse, i});
    Op op;
    op.name = "op" + std::to_string(i);
    op.module = "layers." + std::to_string(i);
    op.time_us = 1;
    op.outputs = {i};
    if (i > 0) op.inputs = {i - 1};
    g.ops.push_back(op);
  }
  const std::string html = plan_page(g, schedule_from_sequence(g, store_all_sequence(g)));
  check_self_contained(html);
  CHECK(count(html, "layers.0 to layers.1") == 3);  // 50 rows of two blocks
  CHECK(count(html, "<details><summary>100 blocks</summary>") == 1);
}

TEST_CASE("pages of steps without times, without backward pass, without anything") {
  TrainingGraph g = example::graph();
  for (Op& op : g.ops) op.time_us = 0;
  check_self_contained(plan_page(g, schedule_from_sequence(g, store_all_sequence(g))));
  g.ops.resize(3);
  g.values.resize(6);
  check_self_contained(plan_page(g, schedule_from_sequence(g, store_all_sequence(g))));
  check_self_contained(plan_page(TrainingGraph{}, Schedule{}));
}

TEST_CASE("a comparison's page") {
  const Comparison comparison = comparison_from_json(R"({
    "title": "GPT-2", "columns": ["peak", "bit-equal"], "notes": ["Two cores."],
    "runs": [{"label": "plain", "cells": ["3 MiB", "yes"],
              "traces": [{"label": "measured", "bytes": [0, 100, 0]}]},
             {"label": "50 %", "cells": ["1 MiB", "yes"], "budget_bytes": 50,
              "traces": [{"label": "predicted", "bytes": [0, 50, 0]}, {"label": "measured", "bytes": [0, 49, 0]}]},
             {"label": "<refused>", "cells": ["", ""]}]})");
  CHECK(comparison.runs[1].traces[1].bytes == std::vector<Bytes>{0, 49, 0});
  const std::string html = comparison_page(comparison);
  check_self_contained(html);
  CHECK(count(html, "<svg") == 3 * 3);       // the common picture and one for each run with traces
  CHECK(count(html, "<polyline") == 3 * 5);  // two in the common picture, one and two in the others
  CHECK(count(html, "&lt;refused&gt;") == 1);
  check_self_contained(comparison_page({}));
}

TEST_CASE("a comparison that is none is refused with the place") {
  CHECK_THROWS_WITH_AS(comparison_from_json("{"), doctest::Contains("[report] this is no JSON, or it was cut short"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(comparison_from_json("{}"), "[report] the field 'runs' is missing", std::invalid_argument);
  CHECK_THROWS_WITH_AS(comparison_from_json(R"({"columns": ["a"], "runs": [{"cells": []}]})"),
                       "[report] runs[0].cells: expected 1, one for each column, found 0", std::invalid_argument);
  CHECK_THROWS_WITH_AS(comparison_from_json(R"({"runs": [{"traces": [{"bytes": [1.5]}]}]})"),
                       "[report] runs[0].traces[0].bytes[0]: expected a whole number, found number", std::invalid_argument);
}

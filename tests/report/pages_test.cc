// The pages are looked at by people; what is held here is that they are whole, escaped and ask nothing of a network.
#include <doctest/doctest.h>

#include <stdexcept>

#include "rockmate/report/chart.h"
#include "rockmate/report/comparison_page.h"
#include "rockmate/report/page.h"
#include "rockmate/report/plan_page.h"
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
      plan_page(g, schedule, {.budget_bytes = 2000, .curve = {{1000, 0.5}, {1124, 0.05}}, .note = "A chain of two blocks."});
  check_self_contained(html);
  CHECK(count(html, "<script>") == 1);  // its own
  CHECK(count(html, "A chain of two blocks.") == 1);
  CHECK(count(html, "budget 1.95 KiB") == 2);  // in the wide and the narrow picture
  CHECK(count(html, "1.10 KiB") >= 1);         // the peak, 1124 bytes
  CHECK(count(html, "without recomputation") >= 2);
  CHECK(count(html, "class=\"marker\"") == 2);
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
  CHECK(count(html, "<svg") == 2 * 3);       // the common picture and one for each run with traces
  CHECK(count(html, "<polyline") == 2 * 5);  // two in the common picture, one and two in the others
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

// A line chart as SVG, drawn with the page's colours (page.h) so that it follows light and dark.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rockmate/report/scale.h"

namespace rockmate {

struct Series {
  std::string label;
  std::vector<Point> points = {};  // ascending x, y of 0 or more
  int color = 0;                   // which of the page's eight
  bool stepped = false;            // y holds until the next x
  bool filled = false;             // area down to the axis
  bool dashed = false;
  bool dotted_points = false;  // a dot at each point: for curves of few points
};

// A dashed line across the chart.
struct Rule {
  std::string label;
  double at = 0;
};

// A stretch of the x axis with its name above, e.g. the forward pass. Every second one is shaded.
struct Band {
  std::string label;
  double from = 0, to = 0;
};

enum class Axis { kNumber, kBytes, kShare };

struct Chart {
  std::string x_label, y_label;  // e.g. "time (ms)"; bytes and shares carry their unit in the ticks
  Axis x_axis = Axis::kNumber, y_axis = Axis::kBytes;
  std::vector<Series> series;
  std::vector<Rule> horizontal, vertical;
  std::vector<Band> bands;
  std::optional<Point> marker;  // a ring around one point
  std::string summary;          // what a screen reader says
};

// The chart for wide screens, for narrow ones and for phones: the page shows the one that fits, so that text is about as large
// in each as in the page around it.
std::string chart_figure(const Chart& chart);

}  // namespace rockmate

// Who works when, as SVG: a row for each part of the model, the step's time from left to right.
#pragma once

#include <string>
#include <vector>

#include "rockmate/report/page.h"

namespace rockmate {

struct Strip {
  double from = 0, to = 0;
  int color = 0;          // which of the page's eight
  bool is_small = false;  // half as high, so that what lies below is seen
};

struct StripRow {
  std::string label;
  std::vector<Strip> strips;  // later ones are drawn over earlier ones where the picture is too small for both
};

struct StripChart {
  std::vector<StripRow> rows;
  double high_x = 0;    // where the step ends
  std::string x_label;  // "time (ms)"
  std::vector<LegendEntry> legend;
  std::string summary;  // what a screen reader says
};

// In the three sizes of drawing.h.
std::string strips_figure(const StripChart& chart);

}  // namespace rockmate

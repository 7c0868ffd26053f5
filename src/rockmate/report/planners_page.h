// Planners side by side on one graph as one HTML page: a picture of overhead against memory, and the table in figures.
#pragma once

#include <string>
#include <vector>

#include "rockmate/report/rivals.h"

namespace rockmate {

struct PlannersPage {
  struct Row {
    PlannerPoints points;
    std::vector<std::string> cells = {};  // by budget; fewer where the comparison was broken off
    double plan_seconds = 0;              // for all budgets together
  };

  std::string title;
  Bytes store_all_peak_bytes = 0;
  Micros store_all_time_us = 0;
  std::vector<std::string> budgets = {};  // as they were asked for
  std::vector<Row> rows = {};
  std::vector<std::string> bounds = {};  // by budget: what no schedule goes below
};

std::string planners_page(const PlannersPage& page);

}  // namespace rockmate

// Axes and curves, brought to the size of a picture.
#pragma once

#include <string>
#include <vector>

namespace rockmate {

struct Point {
  double x = 0;
  double y = 0;
};

struct Tick {
  double at = 0;
  std::string label;
};

// Round positions from 0 to `high` or just below it, at most `count` of them beside 0. high <= 0 gives the tick 0 alone.
std::vector<Tick> number_ticks(double high, int count);  // labels "0", "2.5", "5"
std::vector<Tick> bytes_ticks(double high, int count);   // labels "0", "64 MiB", "128 MiB": round in binary units
std::vector<Tick> share_ticks(double high, int count);   // labels "0", "20%", "40%"

// The points of a curve with ascending x that can still be seen in `columns` pixel columns: of each column the first, lowest,
// highest and last one. A short curve comes back as it is.
std::vector<Point> thinned(const std::vector<Point>& points, int columns);

}  // namespace rockmate

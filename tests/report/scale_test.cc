#include "rockmate/report/scale.h"

#include <doctest/doctest.h>

using namespace rockmate;

namespace {

std::string labels(const std::vector<Tick>& ticks) {
  std::string all;
  for (const Tick& tick : ticks) all += (all.empty() ? "" : " | ") + tick.label;
  return all;
}

}  // namespace

TEST_CASE("ticks are round") {
  CHECK(labels(number_ticks(7, 4)) == "0 | 2 | 4 | 6");
  CHECK(labels(number_ticks(0.3, 3)) == "0 | 0.1 | 0.2 | 0.3");
  CHECK(labels(number_ticks(0, 4)) == "0");
  CHECK(labels(share_ticks(0.31, 4)) == "0 | 10% | 20% | 30%");
  CHECK(labels(bytes_ticks(1000, 4)) == "0 | 256 B | 512 B | 768 B");
  CHECK(labels(bytes_ticks(3.1 * 1024 * 1024, 4)) == "0 | 1 MiB | 2 MiB | 3 MiB");
  CHECK(labels(bytes_ticks(0, 4)) == "0");
}

TEST_CASE("a long curve keeps its ends and extremes") {
  std::vector<Point> points;
  for (int i = 0; i < 10000; ++i) points.push_back({i * 1.0, i == 5000 ? 1e6 : i == 7000 ? -1e6 : i % 10 * 1.0});
  const std::vector<Point> thin = thinned(points, 100);
  CHECK(thin.size() <= 404);
  CHECK(thin.front().x == 0);
  CHECK(thin.back().x == 9999);
  double lowest = 0, highest = 0, before = -1;
  for (const Point& p : thin) {
    CHECK(p.x > before);
    before = p.x;
    lowest = std::min(lowest, p.y);
    highest = std::max(highest, p.y);
  }
  CHECK(highest == 1e6);
  CHECK(lowest == -1e6);
  points.resize(400);
  CHECK(thinned(points, 100).size() == 400);
  // All at one place, as when no op takes time.
  CHECK(thinned(std::vector<Point>(500, Point{3, 1}), 100).size() <= 4);
}

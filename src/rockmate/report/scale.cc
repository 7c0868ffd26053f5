#include "rockmate/report/scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace rockmate {
namespace {

// The least step of 1, 2 or 5 times a power of ten with at most `count` steps up to `high`.
double round_step(double high, int count) {
  const double least = high / count;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string shortest(double number) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.6g", number);
  return text.data();
}

std::vector<Tick> ticks(double high, double step, double unit, const std::string& suffix) {
  std::vector<Tick> result = {{0, "0"}};
  if (!(high > 0)) return result;
  for (int i = 1; i * step <= high * (1 + 1e-9); ++i) result.push_back({i * step, shortest(i * step / unit) + suffix});
  return result;
}

}  // namespace

std::vector<Tick> number_ticks(double high, int count) { return ticks(high, high > 0 ? round_step(high, count) : 1, 1, ""); }

std::vector<Tick> share_ticks(double high, int count) { return ticks(high, high > 0 ? round_step(high, count) : 1, 0.01, "%"); }

std::vector<Tick> bytes_ticks(double high, int count) {
  static constexpr std::array<const char*, 5> kUnits = {" B", " KiB", " MiB", " GiB", " TiB"};
  if (!(high > 0)) return ticks(high, 1, 1, "");
  double step = 1;  // the least power of two with few enough steps
  while (high / step > count) step *= 2;
  double unit = 1;
  std::size_t name = 0;
  for (; step >= unit * 1024 && name + 1 < kUnits.size(); ++name) unit *= 1024;
  return ticks(high, step, unit, kUnits[name]);
}

std::vector<Point> thinned(const std::vector<Point>& points, int columns) {
  if (points.size() <= 4 * static_cast<std::size_t>(columns)) return points;
  const double low = points.front().x, width = points.back().x - low;
  const auto column_of = [&](const Point& p) { return width > 0 ? std::floor((p.x - low) / width * columns) : 0; };
  const auto lower = [](const Point& a, const Point& b) { return a.y < b.y; };
  std::vector<Point> result;
  for (auto begin = points.begin(); begin != points.end();) {
    const double column = column_of(*begin);
    const auto end = std::find_if(begin, points.end(), [&](const Point& p) { return column_of(p) != column; });
    const auto [lowest, highest] = std::minmax_element(begin, end, lower);
    std::array kept = {begin, lowest, highest, end - 1};
    std::sort(kept.begin(), kept.end());
    const auto last = std::unique(kept.begin(), kept.end());
    for (auto it = kept.begin(); it != last; ++it) result.push_back(**it);
    begin = end;
  }
  return result;
}

}  // namespace rockmate

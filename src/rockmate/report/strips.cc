#include "rockmate/report/strips.h"

#include <algorithm>
#include <map>

#include "rockmate/report/drawing.h"
#include "rockmate/report/scale.h"

namespace rockmate {
namespace {

constexpr double kRow = 20, kRight = 18, kTop = 4, kBottom = 44, kLeastWidth = 1;

class StripDrawing {
 public:
  StripDrawing(const StripChart& chart, const PictureSize& size)
      : chart_(chart), width_(size.width), high_x_(chart.high_x > 0 ? chart.high_x : 1) {
    for (const StripRow& row : chart.rows) left_ = std::max(left_, text_width(row.label));
    left_ = std::min(left_, 0.33 * width_) + 10;
    height_ = kTop + kRow * static_cast<double>(chart.rows.size()) + kBottom;
    svg_ = std::string("<svg class=\"chart strips ") + size.style + "\" viewBox=\"0 0 " + coordinate(width_) + " " +
           coordinate(height_) + "\" role=\"img\" aria-label=\"" + escaped(chart.summary) + "\">\n";
  }

  std::string draw() {
    for (std::size_t i = 0; i < chart_.rows.size(); ++i) draw_row(chart_.rows[i], kTop + kRow * static_cast<double>(i));
    draw_axis();
    return svg_ + "</svg>\n";
  }

 private:
  double at_x(double value) const { return left_ + value / high_x_ * (width_ - left_ - kRight); }

  void text(const std::string& style, double x, double y, const std::string& inside) {
    svg_ += "<text class=\"" + style + "\" x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\">" + inside + "</text>\n";
  }

  void draw_row(const StripRow& row, double top) {
    const std::string shown = shortened(row.label, left_ - 10);
    const std::string whole = shown == row.label ? "" : "<title>" + escaped(row.label) + "</title>";
    text("tick y", left_ - 8, top + kRow / 2, escaped(shown) + whole);
    svg_ += "<line class=\"grid\" x1=\"" + coordinate(left_) + "\" y1=\"" + coordinate(top + kRow / 2) + "\" x2=\"" +
            coordinate(width_ - kRight) + "\" y2=\"" + coordinate(top + kRow / 2) + "\"/>\n";
    // One path for each colour; strips that touch on the screen become one.
    std::map<int, std::vector<Point>> by_color;
    std::map<int, bool> is_small;
    for (const Strip& strip : row.strips) {
      const double from = at_x(strip.from), to = std::max(at_x(strip.to), from + kLeastWidth);
      std::vector<Point>& merged = by_color[strip.color];
      is_small[strip.color] = strip.is_small;
      if (!merged.empty() && from <= merged.back().y + 0.3) {
        merged.back().y = std::max(merged.back().y, to);
      } else {
        merged.push_back({from, to});
      }
    }
    std::vector<int> order;
    for (const Strip& strip : row.strips) {
      if (std::find(order.begin(), order.end(), strip.color) == order.end()) order.push_back(strip.color);
    }
    for (int color : order) {
      std::string path;
      const double from = top + (is_small[color] ? kRow / 2 : 3), height = top + kRow - 3 - from;
      for (const Point& from_to : by_color[color]) {
        path += "M" + coordinate(from_to.x) + " " + coordinate(from) + "H" + coordinate(from_to.y) + "v" + coordinate(height) +
                "H" + coordinate(from_to.x) + "z";
      }
      svg_ += "<path class=\"strip c" + std::to_string(color % 8) + "\" d=\"" + path + "\"/>\n";
    }
  }

  void draw_axis() {
    const double bottom = height_ - kBottom;
    int count = 10;
    std::vector<Tick> ticks = number_ticks(chart_.high_x, count);
    const auto is_crowded = [&] {
      double width = 0;
      for (const Tick& tick : ticks) width = std::max(width, text_width(tick.label));
      return static_cast<double>(ticks.size()) * (width + 12) > width_ - left_;
    };
    while (count > 1 && is_crowded()) ticks = number_ticks(chart_.high_x, --count);
    for (const Tick& tick : ticks) {
      text("tick x", std::min(at_x(tick.at), width_ - text_width(tick.label) / 2), bottom + 18, tick.label);
    }
    text("label x", (left_ + width_ - kRight) / 2, height_ - 6, escaped(chart_.x_label));
  }

  const StripChart& chart_;
  double width_, height_ = 0, left_ = 0, high_x_;
  std::string svg_;
};

}  // namespace

std::string strips_figure(const StripChart& chart) {
  std::string pictures;
  for (const PictureSize& size : kPictureSizes) pictures += StripDrawing(chart, size).draw();
  return "<figure>\n" + html_legend(chart.legend) + pictures + "</figure>\n";
}

}  // namespace rockmate

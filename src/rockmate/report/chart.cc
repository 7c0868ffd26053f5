#include "rockmate/report/chart.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "rockmate/report/page.h"

namespace rockmate {
namespace {

std::string number(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

std::vector<Tick> ticks_of(Axis axis, double high, int count) {
  if (axis == Axis::kBytes) return bytes_ticks(high, count);
  return axis == Axis::kShare ? share_ticks(high, count) : number_ticks(high, count);
}

const char* name_of(Axis axis) { return axis == Axis::kBytes ? "bytes" : axis == Axis::kShare ? "share" : "number"; }

class Drawing {
 public:
  Drawing(const Chart& chart, double width, double height, const std::string& style)
      : chart_(chart), width_(width), height_(height) {
    for (const Series& series : chart.series) {
      for (const Point& point : series.points) grow(point.x, point.y);
    }
    for (const Rule& rule : chart.horizontal) grow(0, rule.at);
    for (const Rule& rule : chart.vertical) grow(rule.at, 0);
    high_y_ = high_y_ > 0 ? high_y_ * 1.06 : 1;  // air above the highest line
    high_x_ = high_x_ > 0 ? high_x_ : 1;
    // What the page's script needs to turn a pixel back into numbers.
    svg_ = "<svg class=\"chart " + style + "\" viewBox=\"0 0 " + number(width) + " " + number(height) +
           "\" role=\"img\" aria-label=\"" + escaped(chart.summary) + "\" data-left=\"" + number(kLeft) + "\" data-right=\"" +
           number(width - kRight) + "\" data-top=\"" + number(kTop) + "\" data-bottom=\"" + number(height - kBottom) +
           "\" data-high-x=\"" + std::to_string(high_x_) + "\" data-high-y=\"" + std::to_string(high_y_) + "\" data-x=\"" +
           name_of(chart.x_axis) + "\" data-y=\"" + name_of(chart.y_axis) + "\">\n";
  }

  std::string draw() {
    draw_axes();
    for (const Series& series : chart_.series) draw_series(series);
    for (const Rule& rule : chart_.horizontal) draw_horizontal(rule);
    for (const Rule& rule : chart_.vertical) draw_vertical(rule);
    if (chart_.marker) {
      svg_ += "<circle class=\"marker\" cx=\"" + x(chart_.marker->x) + "\" cy=\"" + y(chart_.marker->y) + "\" r=\"6\"/>\n";
    }
    return svg_ + "</svg>\n";
  }

 private:
  static constexpr double kLeft = 66, kRight = 24, kTop = 14, kBottom = 42;

  void grow(double x, double y) {
    high_x_ = std::max(high_x_, x);
    high_y_ = std::max(high_y_, y);
  }

  std::string x(double value) const { return number(kLeft + value / high_x_ * (width_ - kLeft - kRight)); }
  std::string y(double value) const { return number(height_ - kBottom - value / high_y_ * (height_ - kTop - kBottom)); }

  void line(const std::string& style, const std::string& x1, const std::string& y1, const std::string& x2,
            const std::string& y2) {
    svg_ += "<line class=\"" + style + "\" x1=\"" + x1 + "\" y1=\"" + y1 + "\" x2=\"" + x2 + "\" y2=\"" + y2 + "\"/>\n";
  }

  void text(const std::string& style, const std::string& x, const std::string& y, const std::string& content) {
    svg_ += "<text class=\"" + style + "\" x=\"" + x + "\" y=\"" + y + "\">" + escaped(content) + "</text>\n";
  }

  void draw_axes() {
    for (const Tick& tick : ticks_of(chart_.y_axis, high_y_, 5)) {
      line("grid", x(0), y(tick.at), x(high_x_), y(tick.at));
      text("tick y", number(kLeft - 8), y(tick.at), tick.label);
    }
    for (const Tick& tick : ticks_of(chart_.x_axis, high_x_, width_ > 500 ? 8 : 4)) {
      text("tick x", x(tick.at), number(height_ - kBottom + 18), tick.label);
    }
    text("label x", number((kLeft + width_ - kRight) / 2), number(height_ - 6), chart_.x_label);
    if (!chart_.y_label.empty()) text("label y", number(kLeft + 6), number(kTop + 4), chart_.y_label);
  }

  void draw_series(const Series& series) {
    if (series.points.empty()) return;
    const std::string color = " c" + std::to_string(series.color % 8);
    std::string points;
    const Point* before = nullptr;
    const std::vector<Point> visible = thinned(series.points, static_cast<int>(width_));
    for (const Point& point : visible) {
      if (before && series.stepped && before->x != point.x) points += x(point.x) + "," + y(before->y) + " ";
      points += x(point.x) + "," + y(point.y) + " ";
      before = &point;
    }
    if (series.filled) {
      svg_ += "<polygon class=\"area" + color + "\" points=\"" + x(visible.front().x) + "," + y(0) + " " + points +
              x(visible.back().x) + "," + y(0) + "\"/>\n";
    }
    svg_ += "<polyline class=\"line" + color + (series.dashed ? " dashed" : "") + "\" data-label=\"" + escaped(series.label) +
            "\" data-color=\"" + std::to_string(series.color % 8) + "\" points=\"" + points + "\"/>\n";
    if (!series.dotted_points) return;
    for (const Point& point : visible) {
      svg_ += "<circle class=\"dot" + color + "\" cx=\"" + x(point.x) + "\" cy=\"" + y(point.y) + "\" r=\"2.5\"/>\n";
    }
  }

  void draw_horizontal(const Rule& rule) {
    line("rule", x(0), y(rule.at), x(high_x_), y(rule.at));
    svg_ += "<text class=\"rule-label end\" x=\"" + x(high_x_) + "\" y=\"" + y(rule.at) + "\" dx=\"-4\" dy=\"-5\">" +
            escaped(rule.label) + "</text>\n";
  }

  void draw_vertical(const Rule& rule) {
    line("rule", x(rule.at), y(0), x(rule.at), number(kTop));
    const bool left = rule.at > high_x_ / 2;  // the label goes where there is room
    svg_ += std::string("<text class=\"rule-label") + (left ? " end" : "") + "\" x=\"" + x(rule.at) + "\" y=\"" +
            number(kTop + 10) + "\" dx=\"" + (left ? "-5" : "5") + "\">" + escaped(rule.label) + "</text>\n";
  }

  const Chart& chart_;
  double width_, height_;
  double high_x_ = 0, high_y_ = 0;
  std::string svg_;
};

std::string legend(const Chart& chart) {
  if (chart.series.size() < 2) return "";
  std::string html = "<div class=\"legend\">";
  for (const Series& series : chart.series) {
    html += "<span><i class=\"key c" + std::to_string(series.color % 8) + (series.dashed ? " dashed" : "") + "\"></i>" +
            escaped(series.label) + "</span>";
  }
  return html + "</div>\n";
}

}  // namespace

std::string chart_figure(const Chart& chart) {
  return "<figure>\n" + legend(chart) + Drawing(chart, 860, 330, "wide").draw() + Drawing(chart, 380, 280, "narrow").draw() +
         "</figure>\n";
}

}  // namespace rockmate

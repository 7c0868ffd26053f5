#include "rockmate/report/chart.h"

#include <algorithm>

#include "rockmate/report/drawing.h"
#include "rockmate/report/page.h"

namespace rockmate {
namespace {

constexpr double kRight = 18, kHeading = 26, kNoHeading = 10, kBottom = 44;

std::vector<Tick> ticks_of(Axis axis, double high, int count) {
  if (axis == Axis::kBytes) return bytes_ticks(high, count);
  return axis == Axis::kShare ? share_ticks(high, count) : number_ticks(high, count);
}

double widest(const std::vector<Tick>& ticks) {
  double width = 0;
  for (const Tick& tick : ticks) width = std::max(width, text_width(tick.label));
  return width;
}

const char* name_of(Axis axis) { return axis == Axis::kBytes ? "bytes" : axis == Axis::kShare ? "share" : "number"; }

class Drawing {
 public:
  Drawing(const Chart& chart, const PictureSize& size) : chart_(chart), width_(size.width), height_(size.height) {
    for (const Series& series : chart.series) {
      for (const Point& point : series.points) grow(point.x, point.y);
    }
    for (const Rule& rule : chart.horizontal) grow(0, rule.at);
    for (const Rule& rule : chart.vertical) grow(rule.at, 0);
    for (const Band& band : chart.bands) grow(band.to, 0);
    high_y_ = high_y_ > 0 ? high_y_ * 1.06 : 1;  // air above the highest line
    high_x_ = high_x_ > 0 ? high_x_ : 1;
    y_ticks_ = ticks_of(chart.y_axis, high_y_, 5);
    const bool has_heading = !chart.y_label.empty() || !chart.bands.empty() || !chart.vertical.empty();
    top_ = has_heading ? kHeading : kNoHeading;
    left_ = std::max(34.0, widest(y_ticks_) + 10);
    // What the page's script needs to turn a pixel back into numbers.
    svg_ = std::string("<svg class=\"chart ") + size.style + "\" viewBox=\"0 0 " + coordinate(width_) + " " +
           coordinate(height_) + "\" role=\"img\" aria-label=\"" + escaped(chart.summary) + "\" data-left=\"" +
           coordinate(left_) + "\" data-right=\"" + coordinate(width_ - kRight) + "\" data-top=\"" + coordinate(top_) +
           "\" data-bottom=\"" + coordinate(height_ - kBottom) + "\" data-high-x=\"" + std::to_string(high_x_) +
           "\" data-high-y=\"" + std::to_string(high_y_) + "\" data-x=\"" + name_of(chart.x_axis) + "\" data-y=\"" +
           name_of(chart.y_axis) + "\">\n";
  }

  std::string draw() {
    draw_bands();
    draw_axes();
    for (const Series& series : chart_.series) draw_series(series);
    for (const Rule& rule : chart_.horizontal) draw_horizontal(rule);
    for (const Rule& rule : chart_.vertical) line("rule", x(rule.at), y(0), x(rule.at), coordinate(top_));
    if (chart_.marker) {
      svg_ += "<circle class=\"marker\" cx=\"" + x(chart_.marker->x) + "\" cy=\"" + y(chart_.marker->y) + "\" r=\"6\"/>\n";
    }
    draw_heading();
    return svg_ + "</svg>\n";
  }

 private:
  void grow(double x, double y) {
    high_x_ = std::max(high_x_, x);
    high_y_ = std::max(high_y_, y);
  }

  double at_x(double value) const { return left_ + value / high_x_ * (width_ - left_ - kRight); }
  double at_y(double value) const { return height_ - kBottom - value / high_y_ * (height_ - top_ - kBottom); }
  std::string x(double value) const { return coordinate(at_x(value)); }
  std::string y(double value) const { return coordinate(at_y(value)); }

  void line(const std::string& style, const std::string& x1, const std::string& y1, const std::string& x2,
            const std::string& y2) {
    svg_ += "<line class=\"" + style + "\" x1=\"" + x1 + "\" y1=\"" + y1 + "\" x2=\"" + x2 + "\" y2=\"" + y2 + "\"/>\n";
  }

  void text(const std::string& style, double x, double y, const std::string& content) {
    svg_ += "<text class=\"" + style + "\" x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\">" + escaped(content) +
            "</text>\n";
  }

  void draw_bands() {
    for (std::size_t i = 1; i < chart_.bands.size(); i += 2) {
      const double from = at_x(chart_.bands[i].from), to = at_x(chart_.bands[i].to);
      svg_ += "<rect class=\"band\" x=\"" + coordinate(from) + "\" y=\"" + coordinate(top_) + "\" width=\"" +
              coordinate(std::max(0.0, to - from)) + "\" height=\"" + coordinate(height_ - top_ - kBottom) + "\"/>\n";
    }
  }

  // As many ticks as have room for their labels.
  std::vector<Tick> x_ticks() const {
    for (int count = 10; count > 1; --count) {
      std::vector<Tick> ticks = ticks_of(chart_.x_axis, high_x_, count);
      if (static_cast<double>(ticks.size()) * (widest(ticks) + 12) <= width_ - left_) return ticks;
    }
    return ticks_of(chart_.x_axis, high_x_, 1);
  }

  void draw_axes() {
    for (const Tick& tick : y_ticks_) {
      line("grid", x(0), y(tick.at), x(high_x_), y(tick.at));
      text("tick y", left_ - 8, at_y(tick.at), tick.label);
    }
    for (const Tick& tick : x_ticks()) {
      const double half = text_width(tick.label) / 2;
      text("tick x", std::min(at_x(tick.at), width_ - half), height_ - kBottom + 18, tick.label);
    }
    text("label x", (left_ + width_ - kRight) / 2, height_ - 6, chart_.x_label);
  }

  // The line above the plot: what the y axis is, the bands and the vertical rules.
  void draw_heading() {
    std::vector<PlacedText> texts;
    for (const Rule& rule : chart_.vertical) texts.push_back({rule.label, at_x(rule.at) - text_width(rule.label) / 2});
    const std::size_t num_rules = texts.size();
    for (const Band& band : chart_.bands) {
      texts.push_back({band.label, (at_x(band.from) + at_x(band.to) - text_width(band.label)) / 2});
    }
    std::vector<std::string> rules;
    for (std::size_t i = 0; i < num_rules; ++i) rules.push_back(texts[i].text);
    if (!chart_.y_label.empty()) texts.push_back({chart_.y_label, left_ - 8});
    place_texts(texts, 2, width_ - 2);
    for (const PlacedText& placed : texts) {
      const bool is_rule = std::find(rules.begin(), rules.end(), placed.text) != rules.end();
      text(is_rule ? "rule-label" : "label", placed.begin, top_ - 9, placed.text);
    }
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
    const bool has_room_above = at_y(rule.at) - top_ > 20;
    text("rule-label end", at_x(high_x_) - 4, at_y(rule.at) + (has_room_above ? -5 : 15), rule.label);
  }

  const Chart& chart_;
  double width_, height_, left_ = 0, top_ = 0;
  double high_x_ = 0, high_y_ = 0;
  std::vector<Tick> y_ticks_;
  std::string svg_;
};

std::string legend(const Chart& chart) {
  if (chart.series.size() < 2) return "";
  std::vector<LegendEntry> entries;
  for (const Series& series : chart.series) entries.push_back({series.label, series.color, series.dashed});
  return html_legend(entries);
}

}  // namespace

std::string chart_figure(const Chart& chart) {
  std::string pictures;
  for (const PictureSize& size : kPictureSizes) pictures += Drawing(chart, size).draw();
  return "<figure>\n" + legend(chart) + pictures + "</figure>\n";
}

}  // namespace rockmate

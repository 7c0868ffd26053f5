#include "rockmate/report/drawing.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace rockmate {
namespace {

constexpr double kTextHeight = 13;
constexpr double kGap = 10;

// Is this byte the first of a UTF-8 character?
bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// In shares of the text's height, of DejaVu Sans: the widest of the faces that systems come with.
double character_width(char c) {
  constexpr std::string_view kNarrow = " .,:;'|!ijl()[]ftr", kWide = "%@mwMWOQ…";
  if (kNarrow.find(c) != std::string_view::npos) return 0.42;
  if (kWide.find(c) != std::string_view::npos) return 0.98;
  return c >= 'A' && c <= 'Z' ? 0.76 : 0.645;
}

}  // namespace

std::string coordinate(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

double text_width(const std::string& text) {
  double width = 0;
  for (char c : text) width += begins_character(c) ? kTextHeight * character_width(c) : 0;
  return width;
}

std::string shortened(const std::string& text, double width) {
  if (text_width(text) <= width) return text;
  std::string end = text;
  while (!end.empty() && text_width("…" + end) > width) {
    std::size_t next = 1;
    while (next < end.size() && !begins_character(end[next])) ++next;
    end.erase(0, next);
  }
  return "…" + end;
}

void place_texts(std::vector<PlacedText>& texts, double left, double right) {
  const auto total = [&] {
    double sum = 0;
    for (const PlacedText& text : texts) sum += text_width(text.text) + kGap;
    return sum - kGap;
  };
  while (!texts.empty() && total() > right - left) texts.pop_back();
  std::stable_sort(texts.begin(), texts.end(), [](const PlacedText& a, const PlacedText& b) { return a.begin < b.begin; });
  double free_from = left;
  for (PlacedText& text : texts) {
    text.begin = std::max(text.begin, free_from);
    free_from = text.begin + text_width(text.text) + kGap;
  }
  double free_to = right;
  for (auto text = texts.rbegin(); text != texts.rend(); ++text) {
    text->begin = std::min(text->begin, free_to - text_width(text->text));
    free_to = text->begin - kGap;
  }
}

}  // namespace rockmate

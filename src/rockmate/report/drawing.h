// What the pictures of a report have in common: sizes, numbers as text, and texts side by side that must not touch.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace rockmate {

// One picture is drawn in three sizes, of which the style sheet shows one. Text is 13 units high in each.
struct PictureSize {
  const char* style;  // the class of the style sheet
  double width = 0, height = 0;
};

inline constexpr std::array<PictureSize, 3> kPictureSizes = {{{"wide", 860, 330}, {"medium", 540, 300}, {"narrow", 320, 250}}};

std::string coordinate(double value);  // one digit after the point: "12.5"

// About how wide a text is drawn, never less than it is.
double text_width(const std::string& text);

// The text, or its end after an ellipsis: of module paths the end tells them apart.
std::string shortened(const std::string& text, double width);

struct PlacedText {
  std::string text;
  double begin = 0;  // where its left edge would like to be; after place_texts, where it is
};

// Moves texts on one line, as little as need be, so that they lie between `left` and `right` and do not touch. The order of
// `begin` is kept. What has no room is dropped, the last ones first.
void place_texts(std::vector<PlacedText>& texts, double left, double right);

}  // namespace rockmate

#include "rockmate/report/drawing.h"

#include <doctest/doctest.h>

#include "rockmate/report/texts.h"

using namespace rockmate;

TEST_CASE("texts side by side do not touch and stay inside") {
  const struct {
    std::vector<PlacedText> texts;
    std::size_t left_over;
  } cases[] = {
      {{{"forward", 0}, {"backward", 400}}, 2},        {{{"forward", 100}, {"backward", 100}}, 2},  // pushed apart
      {{{"forward", -50}, {"backward", 490}}, 2},                                                   // pulled inside
      {{{"a", 499}, {"b", 499}, {"c", 499}}, 3},        // pushed back from the right
      {{{"budget", 3}, {std::string(90, 'x'), 0}}, 1},  // no room: the last one goes
  };
  for (auto [texts, left_over] : cases) {
    place_texts(texts, 0, 500);
    REQUIRE(texts.size() == left_over);
    double free_from = 0;
    for (const PlacedText& text : texts) {
      CHECK(text.begin >= free_from);
      free_from = text.begin + text_width(text.text);
    }
    CHECK(free_from <= 500);
  }
}

TEST_CASE("what is too long loses its beginning, never half a character") {
  CHECK(shortened("h.3", 100) == "h.3");
  CHECK(shortened("transformer.h.3", text_width("h.3") + text_width("…")) == "…h.3");
  CHECK(shortened("ääää", text_width("…ä")) == "…ä");
}

TEST_CASE("figures") {
  CHECK(percent(0.125) == "12.5%");
  CHECK(duration(0) == "0 ms");
  CHECK(duration(45) == "45 µs");
  CHECK(duration(12345) == "12.3 ms");
  CHECK(duration(5.634e6) == "5.63 s");
  CHECK(duration(2e9) == "2000 s");
  CHECK(times(1) == "once");
  CHECK(times(3) == "3 times");
}

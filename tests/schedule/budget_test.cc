#include "rockmate/schedule/budget.h"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace rockmate;

TEST_CASE("a whole share is exact: 100 % of any number of bytes are those bytes") {
  for (Bytes bytes = 1; bytes < 5000; ++bytes) {
    CHECK(parse_budget("100%", bytes) == bytes);
    CHECK(parse_budget("1.0", bytes) == bytes);
    CHECK(parse_budget("50%", 2 * bytes) == bytes);
  }
}

TEST_CASE("budgets as users write them") {
  constexpr Bytes kPeak = 1001;
  const struct {
    const char* text;
    Bytes bytes;
  } cases[] = {
      {"800", 800},
      {"800B", 800},
      {"1e9", 1000000000},
      {"800MB", 800000000},
      {"8 gb", 8000000000},
      {"4GiB", 4294967296},
      {" 1.5 KiB ", 1536},
      {"0.5kib", 512},
      {"50%", 500},  // 500.5 rounds down
      {"0.5", 500},
      {"1.0", 1001},    // a share: the whole peak
      {"1", 1},         // no point: one byte
      {"101 %", 1011},  // 1011.01
      {"1e-3%", 0},
  };
  for (const auto& c : cases) {
    CAPTURE(c.text);
    CHECK(parse_budget(c.text, kPeak) == c.bytes);
  }
}

TEST_CASE("nonsense budgets are refused") {
  for (const char* text : {"", "abc", "GiB", "-5", "-50%", "0", "0%", "0.0", "1.5", "8XB", "50%%", "1 2%x", "nan", "inf",
                           "1e400", "9e18kb", "0.5B", "4G iB extra", "--1"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_budget(text, 1000), std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(parse_budget("8XB", 1),
                       "[budget] '8XB' has the unknown unit 'xb'; write bytes (800000000), a size (\"800MB\", \"4GiB\") or a "
                       "share of the plain peak (\"50%\", \"0.5\")",
                       std::invalid_argument);
}

TEST_CASE("bytes are shown with three digits") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(999) == "999 B");
  CHECK(format_bytes(1000) == "0.98 KiB");
  CHECK(format_bytes(1610612736) == "1.50 GiB");
  CHECK(format_bytes(Bytes{123} << 20) == "123 MiB");
  CHECK(format_bytes(-2048) == "-2.00 KiB");
}

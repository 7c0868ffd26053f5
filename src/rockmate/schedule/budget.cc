#include "rockmate/schedule/budget.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

namespace rockmate {
namespace {

[[noreturn]] void fail(const std::string& text, const std::string& why) {
  throw std::invalid_argument("[budget] '" + text + "' " + why +
                              "; write bytes (800000000), a size (\"800MB\", \"4GiB\") or a share of the plain peak (\"50%\", "
                              "\"0.5\")");
}

constexpr std::array<std::pair<const char*, double>, 11> kUnits = {{{"", 1},
                                                                    {"b", 1},
                                                                    {"kb", 1e3},
                                                                    {"mb", 1e6},
                                                                    {"gb", 1e9},
                                                                    {"tb", 1e12},
                                                                    {"kib", 1024.0},
                                                                    {"mib", 1024.0 * 1024},
                                                                    {"gib", 1024.0 * 1024 * 1024},
                                                                    {"tib", 1024.0 * 1024 * 1024 * 1024},
                                                                    {"%", 0.01}}};

std::string lowered_without_spaces(const std::string& text) {
  std::string plain;
  for (unsigned char c : text) {
    if (!std::isspace(c)) plain += static_cast<char>(std::tolower(c));
  }
  return plain;
}

}  // namespace

Bytes parse_budget(const std::string& text, Bytes store_all_peak_bytes) {
  const std::string plain = lowered_without_spaces(text);
  const char* const end = plain.data() + plain.size();
  double number = 0;
  const auto [rest, error] = std::from_chars(plain.data(), end, number);
  if (error != std::errc() || !std::isfinite(number)) fail(text, "is no budget");
  const std::string digits(plain.data(), rest);
  const std::string unit(rest, end);
  if (!(number > 0)) fail(text, "is not above zero");

  // A bare number with a point is a share; without one it is bytes.
  const bool has_point = digits.find('.') != std::string::npos;
  double factor = -1;
  for (const auto& [name, value] : kUnits) {
    if (unit == name) factor = value;
  }
  if (factor < 0) fail(text, "has the unknown unit '" + unit + "'");
  const bool bare_share = unit.empty() && has_point;
  if (bare_share && number > 1) fail(text, "is a share of more than 1, or lacks a unit");
  const bool share = bare_share || unit == "%";
  // Multiplied first: 29 bytes times 100 over 100 are 29, times 0.01 times 100 they would be a byte less.
  const double whole = static_cast<double>(store_all_peak_bytes);
  const double bytes = std::floor(unit == "%" ? number * whole / 100 : bare_share ? number * whole : number * factor);
  if (!share && bytes < 1) fail(text, "is less than one byte");
  if (bytes >= 0x1p63) fail(text, "is more bytes than any machine has");
  return static_cast<Bytes>(bytes);
}

std::string format_bytes(Bytes bytes) {
  static constexpr std::array<const char*, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  double number = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(number) >= 1000 && unit + 1 < kNames.size()) {
    number /= 1024;
    ++unit;
  }
  const int decimals = unit == 0 || std::abs(number) >= 100 ? 0 : std::abs(number) >= 10 ? 1 : 2;
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, number, kNames[unit]);
  return text.data();
}

}  // namespace rockmate

// Random numbers for searches: quick rather than excellent (splitmix64), the same on every machine for the same seed.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rockmate {

class Dice {
 public:
  // The seed is mixed first: streams that begin some steps apart on the same cycle would soon run together.
  explicit Dice(std::uint64_t seed) : state_(mix(mix(seed + kStep) ^ 0xD1B54A32D192ED03ull)) {}

  std::uint64_t next() { return mix(state_ += kStep); }
  // In [0, n), n above 0.
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  // In [first, last]; first when the range is empty.
  int between(int first, int last) { return first + below(std::max(last - first, 0) + 1); }
  // In [0, 1).
  double share() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15ull;

  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace rockmate

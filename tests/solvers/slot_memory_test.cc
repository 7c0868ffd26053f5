#include "rockmate/solvers/slot_memory.h"

#include <doctest/doctest.h>

#include <random>

using namespace rockmate;

TEST_CASE("ranges agree with a plain array") {
  std::mt19937 random(1);
  std::vector<Bytes> plain(37);
  for (Bytes& b : plain) b = random() % 100;
  SlotMemory tree(plain);
  for (int i = 0; i < 500; ++i) {
    int begin = static_cast<int>(random() % 38), end = static_cast<int>(random() % 38);
    if (begin > end) std::swap(begin, end);
    const Bytes bytes = random() % 10;
    tree.add(begin, end - 1, bytes);
    for (int k = begin; k < end; ++k) plain[k] += bytes;
    const int from = static_cast<int>(random() % 37);
    CHECK(tree.most(from, 36) == *std::max_element(plain.begin() + from, plain.end()));
    CHECK(tree.most(from, from - 1) == 0);
  }
}

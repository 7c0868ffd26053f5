// The line of positions against SequenceMemory, which counts the same by a plain scan, over random edits.
#include "rockmate/solvers/position_line.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "rockmate/schedule/schedule.h"
#include "rockmate/solvers/sequence_memory.h"
#include "tests/solvers/random_graph.h"

using namespace rockmate;

namespace {

void check_same(const TrainingGraph& graph, const PositionLine& line) {
  const std::vector<OpId> sequence = line.sequence();
  const SequenceMemory memory(graph, sequence);
  CHECK(line.peak_bytes() == memory.peak_bytes());
  CHECK(line.time_us() == doctest::Approx(sequence_time_us(graph, sequence)));
  Bytes excess = 0;
  for (int p = 0, op = 0; p < line.length(); ++p) {
    excess += std::max<Bytes>(line.held_bytes(p) - line.budget_bytes(), 0);
    CHECK(line.position_of(line.at(p)) == p);
    if (line.op_of(line.at(p)) == kNone) continue;  // the boundary
    CHECK(line.held_bytes(p) == memory.inside()[op++]);
  }
  CHECK(line.excess_bytes() == excess);
}

void check_range(const PositionLine& line, int first, int last, Bytes bytes) {
  Bytes freed = 0;
  int scarcest = first;
  for (int p = first; p <= last; ++p) {
    freed += std::min(bytes, std::max<Bytes>(line.held_bytes(p) - line.budget_bytes(), 0));
    if (line.held_bytes(p) > line.held_bytes(scarcest)) scarcest = p;
  }
  CHECK(line.excess_freed(first, last, bytes) == freed);
  CHECK(line.scarcest(first, last) == scarcest);
}

bool can_insert(const TrainingGraph& graph, const PositionLine& line, OpId op, int position) {
  if (!may_repeat(graph, op)) return false;
  if (graph.ops[op].is_random && position <= line.position_of(line.instances_of(op).front())) return false;
  return std::ranges::all_of(graph.ops[op].inputs, [&](ValueId v) { return line.event_at(v, position) > 0; });
}

}  // namespace

TEST_CASE("random edits of a line of positions keep its memory and its excess exact") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const TrainingGraph graph = testing::random_graph(40, seed, seed % 2 == 0);
    const Bytes plain = SequenceMemory(graph, store_all_sequence(graph)).peak_bytes();
    PositionLine line(graph, store_all_sequence(graph), plain * 3 / 4);
    check_same(graph, line);
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    for (int edit = 0; edit < 300; ++edit) {
      const int position = line.first_position() + below(line.length() - line.first_position());
      if (edit % 3 == 0) {
        const OpId op = below(graph.num_ops());
        if (can_insert(graph, line, op, position)) line.insert(op, position);
      } else if (edit % 3 == 1) {
        const auto id = line.at(position);
        const auto [first, last] = line.window_of(id);
        if (first <= last) line.move(id, first + below(last - first + 1));
      } else if (!line.repeats().empty()) {
        const auto id = line.repeats()[below(static_cast<int>(line.repeats().size()))];
        if (line.can_erase(id)) line.erase(id);
      }
      if (edit % 100 == 99) line.set_budget(plain * (edit % 7) / 7);
      check_same(graph, line);
      const int first = below(line.length());
      check_range(line, first, first + below(line.length() - first), below(static_cast<int>(plain / 4) + 1));
      CHECK_NOTHROW(schedule_from_sequence(graph, line.sequence()));
    }
  }
}

TEST_CASE("the excess falls where the peak does not") {
  // a (4) -> b (2) -> c (2) -> d (1), and d reads a too: held 4, 6, 8, 7. With a made again before d it is held 4, 6, 4, 6, 7:
  // above a budget of 5 that is 1 + 1 + 2 = 4 instead of 1 + 3 + 2 = 6.
  TrainingGraph graph;
  graph.has_boundary = false;
  const Bytes sizes[] = {4, 2, 2, 1};
  for (ValueId v = 0; v < 4; ++v) {
    Op op;
    op.name = std::string(1, static_cast<char>('a' + v));
    op.outputs = {v};
    op.time_us = 1;
    if (v > 0) op.inputs = {v - 1};
    if (v == 3) op.inputs = {0, 2};
    graph.ops.push_back(op);
    graph.values.push_back({.name = op.name, .bytes = sizes[v], .producer = v});
  }
  check_graph(graph);
  PositionLine line(graph, store_all_sequence(graph), 5);
  CHECK(line.peak_bytes() == 8);
  CHECK(line.excess_bytes() == 6);
  line.insert(0, 3);
  CHECK(line.peak_bytes() == 7);
  CHECK(line.excess_bytes() == 4);
}

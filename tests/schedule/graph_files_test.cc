// The hand-made graphs in tests/graphs, with their whole arithmetic.
#include <doctest/doctest.h>

#include "rockmate/graph/file.h"
#include "rockmate/graph/json.h"
#include "rockmate/schedule/simulator.h"

using namespace rockmate;

namespace {

TrainingGraph load(const std::string& name) {
  return graph_from_json(read_file(std::string(ROCKMATE_SOURCE_DIR) + "/tests/graphs/" + name + ".json"));
}

Simulation run(const TrainingGraph& graph, const std::vector<OpId>& sequence) {
  return simulate(graph, schedule_from_sequence(graph, sequence));
}

}  // namespace

// x -> f1 -> a1 -> f2 -> a2 -> f3 -> a3 -> f4 -> a4 -> loss; every a and d has 100 bytes, loss and its tangent 4, every op
// takes 1 us; b_i reads d_i and a_(i-1). Ops 0 to 3 are f1 to f4, 4 and 5 the loss, 6 to 9 are b4 to b1.
TEST_CASE("chain4") {
  const TrainingGraph g = load("chain4");
  // Store-all peaks in b4: a1 a2 a3, loss, d4 and d3.
  const Simulation plain = run(g, store_all_sequence(g));
  CHECK(plain.peak_bytes == 3 * 100 + 4 + 2 * 100);
  CHECK(plain.time_us == 10);
  // a2 alone is kept: f3 again before b4, f1 again before b2. b4 holds a2 a3, loss, d4 d3.
  const Simulation two = run(g, {0, 1, 2, 3, 4, 5, 2, 6, 7, 0, 8, 9});
  CHECK(two.peak_bytes == 2 * 100 + 4 + 2 * 100);
  CHECK(two.overhead() == doctest::Approx(0.2));
  // Nothing is kept: f1 f2 f3, then f1 f2, then f1 again. b4 holds a3, loss, d4 d3: no schedule needs less.
  const Simulation six = run(g, {0, 1, 2, 3, 4, 5, 0, 1, 2, 6, 0, 1, 7, 0, 8, 9});
  CHECK(six.peak_bytes == 100 + 4 + 2 * 100);
  CHECK(six.overhead() == doctest::Approx(0.6));
}

// x -> norm -> h 400 (and the buffer's new content, 8) -> dropout (random) -> y 400 and mask 100 -> head -> out 40; a generator
// state has 5000 bytes.
TEST_CASE("dropout") {
  const TrainingGraph g = load("dropout");
  // norm           h 400 + new_running 8 + workspace 64 = 472, after it 408
  // dropout        408 + y 400 + mask 100               = 908; free h: 908 before, 508 after
  // head           508 + out 40                         = 548; free new_running, the forward pass is over: 540
  // head_b         540 + dout 40 + dy 400               = 980; free dout, y: 980, 940 before, 540 after
  // dropout_b      540 + dh 400                         = 940; free dy, mask: 940, 540 before, 440 after
  // norm_b         440 + workspace 32                   = 472; dw is not charged; free dh: 440 before, out 40 after
  const Simulation plain = run(g, store_all_sequence(g));
  CHECK(plain.bytes_inside == std::vector<Bytes>{472, 908, 908, 548, 548, 980, 980, 940, 940, 940, 540, 472, 440});
  CHECK(plain.bytes_after.back() == 40);
  CHECK(plain.peak_bytes == 980);
  // dropout again before head_b: h is kept for y and mask, but the generator states weigh more.
  // dropout        408 + 500 + state 5000 = 5908; free mask: 5908 before, 5808 after
  // head           5808 + 40 = 5848; free y and new_running: 5848, 5448 before, 5440 after
  // dropout again  5440 + dout 40 + y, mask 500 + the stream's own state 5000 = 10980; after it 980, no state is held
  const Simulation again = run(g, {0, 1, 2, 1, 3, 4, 5});
  const std::vector<Bytes> begin = {472, 5908, 5908, 5848, 5848, 5448, 10980, 980};
  CHECK(std::vector<Bytes>(again.bytes_inside.begin(), again.bytes_inside.begin() + 8) == begin);
  CHECK(again.peak_action == 6);
  CHECK(again.bytes_after[6] == 980);
}

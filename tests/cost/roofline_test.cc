#include "rockmate/cost/roofline.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "rockmate/cost/uniform.h"
#include "tests/example_graph.h"

using namespace rockmate;

namespace {

// 1 TFLOP/s in float32 at half efficiency, 1 TB/s of memory at a quarter: 0.5 MFLOP or 0.25 MB take a microsecond.
DeviceDescription device() {
  DeviceDescription d;
  d.name = "test";
  d.launch_us = 3;
  d.bandwidth_bytes_per_s = 1e12;
  d.peak_flops = {{"float32", 1e12}, {"float16", 4e12}};
  d.compute_efficiency = 0.5;
  d.memory_efficiency = 0.25;
  return d;
}

}  // namespace

TEST_CASE("an op takes a launch and the longer of computing and moving") {
  const struct {
    const char* what;
    double flops;
    Bytes moved_bytes;
    const char* dtype;
    Micros time_us;
  } cases[] = {
      {"nothing to do", 0, 0, "float32", 3},
      {"bound by memory: 1 MB is 4 us, 1 MFLOP is 2 us", 1e6, 1000000, "float32", 3 + 4},
      {"bound by compute: 10 MFLOP are 20 us", 1e7, 1000000, "float32", 3 + 20},
      {"float16 is four times as fast: 5 us", 1e7, 1000000, "float16", 3 + 5},
      {"a dtype with no unit counts as float32", 1e7, 1000000, "complex64", 3 + 20},
      {"no dtype", 1e7, 0, "", 3 + 20},
  };
  for (const auto& c : cases) {
    CAPTURE(c.what);
    Op op;
    op.flops = c.flops;
    op.moved_bytes = c.moved_bytes;
    op.dtype = c.dtype;
    CHECK(roofline_time_us(op, device()) == doctest::Approx(c.time_us));
  }
}

TEST_CASE("a 4096^3 bfloat16 product and a 1 GB addition on the known devices") {
  // Products: 2 * 4096^3 = 137.4 GFLOP over peak times efficiency, e.g. a100: 137.4e9 / (312e12 * 0.75) = 587 us, and 5 us.
  // v100 and cpu have no bfloat16 and count it as float32. Additions: 1e9 / (bandwidth * efficiency).
  const struct {
    const char* name;
    Micros product_us, addition_us;
  } cases[] = {
      {"cpu", 2 + 137.439e9 / (156.8e9 * 0.93) * 1e6, 2 + 1e9 / 26e9 * 1e6},
      {"v100", 5 + 11672.1, 5 + 1307.2},
      {"A100", 5 + 587.3, 5 + 577.0},
      {"h100", 5 + 198.5, 5 + 351.2},
      {"h200", 5 + 198.5, 5 + 245.1},
  };
  Op product, addition;
  product.flops = 2.0 * 4096 * 4096 * 4096;
  product.dtype = "bfloat16";
  addition.moved_bytes = 1000000000;
  for (const auto& c : cases) {
    CAPTURE(c.name);
    CHECK(roofline_time_us(product, find_device(c.name)) == doctest::Approx(c.product_us).epsilon(1e-3));
    CHECK(roofline_time_us(addition, find_device(c.name)) == doctest::Approx(c.addition_us).epsilon(1e-3));
  }
}

TEST_CASE("a graph is priced op by op, workspaces stay") {
  TrainingGraph g = example::graph();
  CHECK_THROWS_AS(with_roofline_costs(g, device()), std::invalid_argument);  // no op says what it does
  g.ops[0].flops = 5e5;
  g.ops[0].workspace_bytes = 64;
  const TrainingGraph priced = with_roofline_costs(g, device());
  CHECK(priced.ops[0].time_us == doctest::Approx(4));
  CHECK(priced.ops[0].workspace_bytes == 64);
  CHECK(priced.ops[1].time_us == 3);
  CHECK(priced.device == "test");
  CHECK(with_uniform_costs(g).ops[0].time_us == 1);
  CHECK_NOTHROW(with_roofline_costs(TrainingGraph{}, device()));
}

TEST_CASE("devices from files") {
  for (const DeviceDescription& known : known_devices()) {
    CAPTURE(known.name);
    CHECK_NOTHROW(check_device(known));
    const DeviceDescription again = device_from_json(device_to_json(known));
    CHECK(again.peak_flops == known.peak_flops);
    CHECK(again.bandwidth_bytes_per_s == known.bandwidth_bytes_per_s);
    CHECK(again.source == known.source);
  }
  CHECK_THROWS_WITH_AS(find_device("tpu"),
                       "[device] 'tpu' is unknown: there are cpu, v100, a100, h100, h200, or give a file that ends in .json",
                       std::invalid_argument);
  CHECK_THROWS_AS(find_device("missing.json"), std::invalid_argument);
  DeviceDescription slow = device();
  slow.bandwidth_bytes_per_s = 0;
  CHECK_THROWS_AS(check_device(slow), std::invalid_argument);
  slow = device();
  slow.peak_flops.erase("float32");
  CHECK_THROWS_AS(with_roofline_costs(example::graph(), slow), std::invalid_argument);
}

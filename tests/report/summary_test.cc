#include "rockmate/report/summary.h"

#include <doctest/doctest.h>

#include "tests/example_graph.h"

using namespace rockmate;
using namespace example;

TEST_CASE("blocks of module paths") {
  const struct {
    const char* module;
    int levels;
    const char* block;
  } cases[] = {
      {"transformer.h.3.mlp.c_fc", 1, "transformer.h.3"},
      {"transformer.h.3.mlp.c_fc", 2, "transformer.h.3"},
      {"encoder.stages.0.layers.12.conv", 1, "encoder.stages.0"},
      {"encoder.stages.0.layers.12.conv", 2, "encoder.stages.0.layers.12"},
      {"transformer.wte", 2, "transformer.wte"},
      {"conv1", 1, "conv1"},
      {"0", 1, "0"},
      {"", 1, ""},
  };
  for (const auto& c : cases) CHECK(block_of(c.module, c.levels) == c.block);
}

TEST_CASE("the finest blocks that are few enough") {
  TrainingGraph g = graph();
  for (OpId op = 0; op < 3; ++op) g.ops[op].module = "s.0.l." + std::to_string(op) + ".conv";
  CHECK(blocks_of(g, 4)[2] == "s.0.l.2");
  CHECK(blocks_of(g, 2)[2] == "s.0");
  CHECK(blocks_of(g, 1)[2] == "s.0");  // not fewer than the coarsest gives
  CHECK(blocks_of(g, 4)[5] == "(no module)");
}

TEST_CASE("what a block keeps and recomputes") {
  TrainingGraph g = graph();
  g.ops[0].module = "layers.0";
  g.ops[1].module = "layers.1";
  g.ops[2].module = "layers.1";
  // y is computed again from h: h (1000) is kept instead of y (100), beside the loss (4).
  const auto blocks = summarize_blocks(g, schedule_from_sequence(g, {0, 1, 2, 3, 1, 4, 5}));
  REQUIRE(blocks.size() == 2);
  CHECK(blocks[0].block == "layers.0");
  CHECK(blocks[0].kept_bytes == 1000);
  CHECK(blocks[0].store_all_kept_bytes == 0);
  CHECK(blocks[0].recomputed == 0);
  CHECK(blocks[1].kept_bytes == 4);
  CHECK(blocks[1].store_all_kept_bytes == 104);
  CHECK(blocks[1].forward_ops == 2);
  CHECK(blocks[1].recomputed == 1);
  CHECK(blocks[1].recompute_time_us == 1);
  CHECK(blocks[1].most_often == 1);
}

TEST_CASE("who holds the memory, the workspace too") {
  TrainingGraph g = graph();
  g.ops[0].module = "layers.0";
  g.ops[1].module = "layers.1";
  g.ops[1].workspace_bytes = 500;
  const PeakSummary summary = summarize_action(g, schedule_from_sequence(g, store_all_sequence(g)), 1);
  // While relu runs: h 1000, its workspace 500, y 100.
  REQUIRE(summary.values.size() == 3);
  CHECK(summary.values[0].what == "h");
  CHECK(summary.values[1].what == "workspace of relu");
  CHECK(summary.values[1].bytes == 500);
  CHECK(summary.values[2].what == "y");
  REQUIRE(summary.blocks.size() == 2);
  CHECK(summary.blocks[0].what == "layers.0");
  CHECK(summary.blocks[0].bytes == 1000);
  CHECK(summary.blocks[1].bytes == 600);
  CHECK(summary.blocks[1].count == 2);
  REQUIRE(summary.calls.size() == 3);
  CHECK(summary.calls[0].what == "aten.mm");
  CHECK(summary.calls[1].what == "workspace of aten.relu");
  CHECK(summary.calls[2].what == "aten.relu");
  CHECK(summary.calls[2].bytes == 100);
}

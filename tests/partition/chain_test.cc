#include "rockmate/partition/chain.h"

#include <doctest/doctest.h>

#include "rockmate/partition/block_problem.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;
using namespace rockmate::testing;

namespace {

// What must hold of any chain: blocks tile the forward pass, the backward pass runs from the last block to the first, and a
// backward op reads unpinned forward values of its own block only, or its block's input.
void check_chain(const TrainingGraph& graph, const Chain& chain) {
  const OpId num_forward = num_forward_ops(graph);
  OpId next = 0;
  std::size_t backward = 0;
  for (const Block& block : chain.blocks) {
    CHECK(block.begin == next);
    next = block.end;
    backward += block.backward.size();
  }
  CHECK(next == num_forward);
  CHECK(backward == static_cast<std::size_t>(graph.num_ops() - num_forward));
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const int k = chain.block_of[op];
    for (ValueId v : graph.ops[op].inputs) {
      const OpId producer = graph.values[v].producer;
      if (producer == kNone || chain.pinned[v] || charged_bytes(graph.values[v]) == 0) continue;
      const int from = chain.block_of[producer];
      if (producer >= num_forward) {
        CHECK(from >= k);
      } else {
        const bool is_own_or_input = from == k || chain.blocks[k].input == v;
        CHECK(is_own_or_input);
      }
    }
  }
}

}  // namespace

TEST_CASE("a transformer gives two blocks a layer, and two classes for all layers") {
  const TrainingGraph graph = transformer(8);
  const Chain chain = partition_chain(graph);
  check_chain(graph, chain);
  CHECK(chain.blocks.size() >= 16);
  CHECK(chain.blocks.size() <= 19);
  const BlockClasses classes = classify_blocks(graph, chain);
  CHECK(classes.problems.size() <= 5);
  CHECK(chain.pinned[1]);  // the mask
  // The mask and the loss: T * T * 1 and 4 bytes.
  CHECK(chain.pinned_bytes == 32 * 32 + 4);
}

TEST_CASE("chains of all kinds of graphs hold together") {
  check_chain(unet(4), partition_chain(unet(4)));
  check_chain(plain_chain(100), partition_chain(plain_chain(100)));
  for (unsigned seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    const TrainingGraph graph = random_step(40, seed);
    check_chain(graph, partition_chain(graph));
  }
}

TEST_CASE("long chains are put together") {
  const TrainingGraph graph = plain_chain(3000);
  const Chain chain = partition_chain(graph, 50);
  CHECK(chain.blocks.size() <= 51);
  check_chain(graph, chain);
}

TEST_CASE("gradients of a value that all blocks read cross all boundaries") {
  // An encoder output e is read by each of 12 blocks; its gradient is added up from the last to the first.
  StepBuilder step;
  const ValueId in = step.input(10);
  const ValueId e = step.op("encoder", {in}, {.bytes = 64});
  ValueId x = step.op("embed", {in}, {.bytes = 100});
  for (int i = 0; i < 12; ++i) {
    ValueId h = step.op("cross", {x, e}, {.bytes = 100, .saves_inputs = true});
    for (int k = 0; k < 6; ++k) h = step.op("inner", {h}, {.bytes = 100, .saves_inputs = true});
    x = step.op("residual", {x, h}, {.bytes = 100});
  }
  step.op("loss", {x}, {.bytes = 4, .saves_inputs = true});
  const TrainingGraph graph = step.finish();
  const Chain chain = partition_chain(graph);
  check_chain(graph, chain);
  REQUIRE(chain.blocks.size() > 6);
  CHECK(chain.pinned[e]);
  const std::size_t middle = chain.blocks.size() / 2;
  CHECK(chain.gradient_bytes[middle] == 164);  // of x and of e
}

TEST_CASE("a step without a backward pass, or with one op, is one block or more and no error") {
  TrainingGraph graph = plain_chain(3);
  graph.ops.resize(num_forward_ops(graph));
  std::erase_if(graph.values, [](const Value& v) { return v.kind != ValueKind::kActivation && v.kind != ValueKind::kInput; });
  check_chain(graph, partition_chain(graph));
  CHECK(partition_chain(TrainingGraph{}).blocks.size() == 1);
}

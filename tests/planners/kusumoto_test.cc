#include "rockmate/planners/kusumoto.h"

#include <doctest/doctest.h>

#include <limits>

#include "rockmate/planner/judge.h"
#include "rockmate/planners/lower_set_program.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;

namespace {

using testing::StepBuilder;

OpSet set_of(OpId num_ops, const std::vector<OpId>& ops) {
  OpSet set(num_ops);
  for (OpId op : ops) set.add(op);
  return set;
}

// a -> b, c -> d; the backward of each reads its inputs.
TrainingGraph diamond() {
  StepBuilder step;
  const ValueId x = step.input(1);
  const ValueId a = step.op("a", {x}, {.bytes = 10, .time_us = 1, .saves_inputs = true});
  const ValueId b = step.op("b", {a}, {.bytes = 20, .time_us = 2, .saves_inputs = true});
  const ValueId c = step.op("c", {a}, {.bytes = 30, .time_us = 4, .saves_inputs = true});
  step.op("d", {b, c}, {.bytes = 40, .time_us = 8, .saves_inputs = true});
  return step.finish();
}

// Outlives the programs that poll it.
const PlannerContext& context() {
  static const PlannerContext context{PlannerOptions{}};
  return context;
}

// The least recomputation of any sequence of lower sets from `at` on, by trying all.
Micros brute_force(const LowerSetProgram& program, const std::vector<OpSet>& family, std::size_t at, Bytes kept, Bytes b) {
  if (at + 1 == family.size()) return 0;
  Micros best = std::numeric_limits<Micros>::infinity();
  for (std::size_t next = at + 1; next < family.size(); ++next) {
    if (!family[at].within(family[next])) continue;
    const LowerSetProgram::Step step = program.step(family[at], family[next]);
    if (kept + step.peak_bytes > b) continue;
    best = std::min(best, step.recompute_us + brute_force(program, family, next, kept + step.kept_bytes, b));
  }
  return best;
}

}  // namespace

TEST_CASE("lower sets of the diamond: all six, and the closures of its ops") {
  const TrainingGraph graph = diamond();
  CHECK(all_lower_sets(graph, 6).size() == 6);
  CHECK(all_lower_sets(graph, 5).empty());
  const std::vector<OpSet> closures = closures_of_ops(graph);
  CHECK(closures ==
        std::vector<OpSet>{set_of(4, {}), set_of(4, {0}), set_of(4, {0, 1}), set_of(4, {0, 2}), set_of(4, {0, 1, 2, 3})});
}

TEST_CASE("what one step between lower sets costs") {
  const TrainingGraph graph = diamond();
  const LowerSetProgram program(graph, all_lower_sets(graph, 100), context());
  // {} -> {a, b}: both results are read outside (a by c, b by d), so both are kept and nothing is recomputed.
  const auto both = program.step(set_of(4, {}), set_of(4, {0, 1}));
  CHECK(both.recompute_us == 0);
  CHECK(both.kept_bytes == 30);
  // {} -> {a, b, c}: a is inner and recomputed, b and c are kept. M(V') = 60 and the gradients of b and c's backward.
  const auto three = program.step(set_of(4, {}), set_of(4, {0, 1, 2}));
  CHECK(three.recompute_us == 1);
  CHECK(three.kept_bytes == 50);
  CHECK(three.peak_bytes > 60);
  // To the end nothing is recomputed; the result of d leaves the step and stays.
  const auto rest = program.step(set_of(4, {0, 1, 2}), set_of(4, {0, 1, 2, 3}));
  CHECK(rest.recompute_us == 0);
  CHECK(rest.kept_bytes == 40);
}

TEST_CASE("the dynamic program is the best of all sequences of lower sets") {
  int solved = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const TrainingGraph graph = testing::random_step(7, seed);
    const std::vector<OpSet> family = all_lower_sets(graph, 64);
    if (family.empty()) continue;
    const LowerSetProgram program(graph, family, context());
    for (Bytes b = program.most_bytes(); b > 0; b -= std::max<Bytes>(program.most_bytes() / 24, 1)) {
      CAPTURE(seed);
      CAPTURE(b);
      const Micros best = brute_force(program, family, 0, 0, b);
      const auto found = program.solve(b);
      CHECK(found.has_value() == std::isfinite(best));
      if (!found) break;
      CHECK(found->first.recompute_us == doctest::Approx(best));
      CHECK(found->second.recompute_us >= found->first.recompute_us);
      ++solved;
    }
  }
  CHECK(solved > 50);
}

TEST_CASE("segments of a strategy follow the edges") {
  const TrainingGraph graph = testing::random_step(30, 3);
  const LowerSetProgram program(graph, closures_of_ops(graph), context());
  const auto found = program.solve(program.most_bytes() / 4);
  REQUIRE(found);
  const std::vector<int>& segment_of = found->second.segment_of;
  for (OpId op = 0; op < num_forward_ops(graph); ++op) {
    for (ValueId v : graph.ops[op].inputs) {
      if (graph.values[v].producer != kNone) CHECK(segment_of[graph.values[v].producer] <= segment_of[op]);
    }
  }
}

TEST_CASE("exact where lower sets can be counted, approximate elsewhere") {
  const auto run = [](const TrainingGraph& graph) {
    const Plan plain = *judged_plan(graph, store_all_sequence(graph), "");
    return run_planner(find_planner("kusumoto"), graph, plain.peak_bytes * 7 / 10, context());
  };
  const PlannerResult chain = run(testing::plain_chain(8));
  REQUIRE(chain.plan);
  CHECK(chain.note == "exact: all 18 lower sets");  // 17 ops
  StepBuilder step;
  const ValueId x = step.input(1);
  std::vector<ValueId> branches;
  for (int i = 0; i < 12; ++i) {
    ValueId y = step.op("f", {x}, {.bytes = 10, .saves_inputs = true});
    for (int j = 0; j < 3; ++j) y = step.op("g", {y}, {.bytes = 10, .saves_inputs = true});
    branches.push_back(y);
  }
  step.op("concat", branches, {.bytes = 5});
  CHECK(run(step.finish()).note.starts_with("approximate: "));
}

TEST_CASE("more ops than lower sets are looked at: those with small boundaries are") {
  const TrainingGraph graph = testing::transformer(60);
  REQUIRE(num_forward_ops(graph) > static_cast<OpId>(LowerSetProgram::kMaxLowerSets));
  const Plan plain = *judged_plan(graph, store_all_sequence(graph), "");
  const PlannerResult result = run_planner(find_planner("kusumoto"), graph, plain.peak_bytes / 2, context());
  REQUIRE(result.plan);
  CHECK(result.plan->overhead < 0.25);
}

#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "rockmate/planner/planner.h"
#include "rockmate/schedule/verifier.h"
#include "tests/example_graph.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;
using namespace rockmate::testing;

namespace {

void check_curve(const TrainingGraph& graph, const PlanCurve& curve) {
  REQUIRE(!curve.plans.empty());
  for (std::size_t i = 0; i < curve.plans.size(); ++i) {
    const Plan& plan = curve.plans[i];
    CHECK_FALSE(verify(graph, plan.schedule).has_value());
    const Simulation simulation = simulate(graph, plan.schedule);
    CHECK(plan.peak_bytes == simulation.peak_bytes);
    CHECK(plan.time_us == simulation.time_us);
    CHECK(plan.schedule.actions == schedule_from_sequence(graph, plan.sequence).actions);
    if (i > 0) {
      CHECK(plan.peak_bytes > curve.plans[i - 1].peak_bytes);
      CHECK(plan.time_us < curve.plans[i - 1].time_us);
    }
  }
  CHECK(curve.plans.back().time_us == curve.store_all_time_us);
  CHECK(curve.plans.back().peak_bytes <= curve.store_all_peak_bytes);
  CHECK(curve.at(curve.store_all_peak_bytes)->num_recomputed == 0);
  CHECK(curve.at(curve.min_budget_bytes()) == &curve.plans.front());
  CHECK(curve.at(curve.min_budget_bytes() - 1) == nullptr);
}

}  // namespace

TEST_CASE("a transformer: a chain, and most of the memory for little time") {
  const TrainingGraph graph = transformer(6);
  const PlanCurve curve = plan_curve(graph);
  check_curve(graph, curve);
  CHECK(curve.has_chain);
  CHECK(curve.num_blocks >= 12);
  CHECK(curve.num_block_classes <= 5);
  REQUIRE(curve.at(curve.store_all_peak_bytes / 2) != nullptr);
  CHECK(curve.at(curve.store_all_peak_bytes / 2)->overhead < 0.10);
  // Recomputing every layer once costs a third; a third of the memory is enough for less.
  REQUIRE(curve.at(curve.store_all_peak_bytes / 3) != nullptr);
  CHECK(curve.at(curve.store_all_peak_bytes / 3)->overhead < 0.25);
}

TEST_CASE("long skips, plain chains and random graphs get plans too") {
  check_curve(unet(4), plan_curve(unet(4)));
  check_curve(plain_chain(60), plan_curve(plain_chain(60)));
  for (unsigned seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    const TrainingGraph graph = random_step(25, seed);
    check_curve(graph, plan_curve(graph));
  }
}

TEST_CASE("a graph without a chain is planned as a whole and says so") {
  // Every op reads the two before it.
  StepBuilder step;
  std::vector<ValueId> x{step.op("a", {step.input(1)}, {.bytes = 10, .saves_result = true})};
  x.push_back(step.op("b", {x[0]}, {.bytes = 10, .saves_result = true}));
  for (int i = 0; i < 12; ++i) {
    x.push_back(step.op("c", {x[x.size() - 1], x[x.size() - 2]}, {.bytes = 10, .saves_inputs = true}));
  }
  step.op("loss", {x[x.size() - 1], x[x.size() - 2]}, {.bytes = 1});
  const TrainingGraph graph = step.finish();
  const PlanCurve curve = plan_curve(graph);
  check_curve(graph, curve);
  CHECK_FALSE(curve.has_chain);
  CHECK(curve.num_blocks == 1);
  CHECK(curve.note.find("no chain") != std::string::npos);
  CHECK(curve.plans.size() > 1);
}

TEST_CASE("tiny and odd graphs") {
  check_curve(example::graph(), plan_curve(example::graph()));
  TrainingGraph forward_only = plain_chain(3);
  const OpId num_forward = num_forward_ops(forward_only);
  forward_only.ops.resize(num_forward);
  std::vector<Value> values;
  for (const Value& v : forward_only.values) {
    if (v.producer < num_forward && v.kind != ValueKind::kTangent) values.push_back(v);
  }
  forward_only.values = values;
  const PlanCurve curve = plan_curve(forward_only);
  CHECK(curve.plans.size() == 1);
  CHECK(plan_curve(TrainingGraph{}).plans.size() == 1);
}

TEST_CASE("same graph, same options, same plans, whatever the number of threads") {
  const TrainingGraph graph = transformer(3);
  PlannerOptions options;
  options.threads = 1;
  const PlanCurve one = plan_curve(graph, options);
  options.threads = 4;
  const PlanCurve four = plan_curve(graph, options);
  REQUIRE(one.plans.size() == four.plans.size());
  for (std::size_t i = 0; i < one.plans.size(); ++i) CHECK(one.plans[i].sequence == four.plans[i].sequence);
}

TEST_CASE("solved blocks from disk give the same plans") {
  const auto directory = std::filesystem::temp_directory_path() / "rockmate-plan-cache-test";
  std::filesystem::remove_all(directory);
  const TrainingGraph graph = transformer(3);
  PlannerOptions options;
  options.cache_dir = directory.string();
  const PlanCurve first = plan_curve(graph, options);
  CHECK(!std::filesystem::is_empty(directory));
  const PlanCurve second = plan_curve(graph, options);
  REQUIRE(first.plans.size() == second.plans.size());
  for (std::size_t i = 0; i < first.plans.size(); ++i) CHECK(first.plans[i].sequence == second.plans[i].sequence);
  std::filesystem::remove_all(directory);
}

TEST_CASE("progress names every stage and can stop the planner") {
  const TrainingGraph graph = transformer(3);
  std::set<std::string> stages;
  PlannerOptions options;
  options.on_progress = [&](const Progress& progress) {
    CHECK(progress.done >= 0);
    CHECK(progress.done <= 1);
    stages.insert(progress.stage);
    return true;
  };
  const PlanCurve curve = plan_curve(graph, options);
  CHECK(stages == std::set<std::string>{"partition", "blocks", "chain", "whole graph", "simulate"});
  CHECK(curve.stages.size() == 5);
  options.on_progress = [](const Progress& progress) { return progress.stage != "chain"; };
  CHECK_THROWS_AS(plan_curve(graph, options), Interrupted);
}

TEST_CASE("a time limit returns what there is and says so") {
  const TrainingGraph graph = transformer(40);
  PlannerOptions options;
  options.time_limit_s = 1e-6;
  const PlanCurve curve = plan_curve(graph, options);
  check_curve(graph, curve);
}

TEST_CASE("bad options are refused with a message that says what to choose") {
  const TrainingGraph graph = example::graph();
  const auto refused = [&](auto change) {
    PlannerOptions options;
    change(options);
    CHECK_THROWS_AS(plan_curve(graph, options), std::invalid_argument);
  };
  refused([](PlannerOptions& o) { o.save_levels = 1; });
  refused([](PlannerOptions& o) { o.peak_levels = 31; });
  refused([](PlannerOptions& o) { o.memory_steps = 499; });
  refused([](PlannerOptions& o) { o.curve_points = 0; });
  refused([](PlannerOptions& o) { o.threads = -1; });
  refused([](PlannerOptions& o) { o.time_limit_s = 0; });
  refused([](PlannerOptions& o) { o.mip_gap = 1; });
}

// Properties of liveness, verifier and simulator together, on random small steps with random recomputations.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "rockmate/graph/json.h"
#include "rockmate/schedule/simulator.h"
#include "rockmate/schedule/verifier.h"

using namespace rockmate;

namespace {

using Random = std::mt19937;

int draw(Random& random, int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

TrainingGraph random_graph(Random& random) {
  TrainingGraph g;
  g.rng_state_bytes = 7;
  g.values = {{"x", 10, ValueKind::kInput}, {"t", 3, ValueKind::kTangent}};
  const int forward = draw(random, 1, 6), backward = draw(random, 0, 6);
  for (OpId id = 0; id < forward + backward; ++id) {
    Op op;
    op.name = "op" + std::to_string(id);
    op.pass = id < forward ? Pass::kForward : Pass::kBackward;
    op.time_us = draw(random, 0, 5);
    op.workspace_bytes = draw(random, 0, 30);
    op.is_random = draw(random, 0, 4) == 0;
    op.recomputable = draw(random, 0, 5) != 0;
    for (ValueId v = 0; v < g.num_values(); ++v) {
      const bool tangent_too_early = v == 1 && id < forward;
      if (!tangent_too_early && draw(random, 0, 2) == 0) op.inputs.push_back(v);
    }
    for (int i = draw(random, 0, 2); i >= 0; --i) {
      op.outputs.push_back(g.num_values());
      const ValueKind kind = id < forward         ? ValueKind::kActivation
                             : draw(random, 0, 3) ? ValueKind::kGradient
                                                  : ValueKind::kParameterGradient;
      auto retention = static_cast<Retention>(draw(random, 0, 5) == 0 ? draw(random, 1, 2) : 0);
      if (kind == ValueKind::kParameterGradient) retention = Retention::kUntilStepEnd;
      g.values.push_back({"v" + std::to_string(g.num_values()), draw(random, 0, 100), kind, retention, id});
    }
    g.ops.push_back(op);
  }
  check_graph(g);
  return g;
}

// Store-all with forward ops computed again here and there in the backward pass.
std::vector<OpId> random_sequence(const TrainingGraph& g, Random& random) {
  const OpId forward = num_forward_ops(g);
  std::vector<OpId> sequence;
  for (OpId id = 0; id < g.num_ops(); ++id) {
    for (int i = id < forward ? 0 : draw(random, 0, 2); i > 0; --i) {
      const OpId again = draw(random, 0, forward - 1);
      if (g.ops[again].recomputable) sequence.push_back(again);
    }
    sequence.push_back(id);
  }
  return sequence;
}

}  // namespace

TEST_CASE("every sequence becomes a schedule that the verifier accepts and whose bytes add up") {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    const TrainingGraph g = random_graph(random);
    const std::vector<OpId> sequence = random_sequence(g, random);
    CAPTURE(graph_to_json(g));
    const Schedule schedule = schedule_from_sequence(g, sequence);
    const auto fault = verify(g, schedule);
    REQUIRE_MESSAGE(!fault.has_value(), (fault ? fault->message : ""));
    const Simulation simulation = simulate(g, schedule);

    // What is left is what leaves the step.
    Bytes leaves = 0;
    for (const Value& value : g.values) {
      const bool there = value.producer != kNone;
      if (there && value.retention == Retention::kUntilStepEnd) leaves += charged_bytes(value);
    }
    if (!simulation.bytes_after.empty()) CHECK(simulation.bytes_after.back() == leaves);
    // The peak is the highest of the trace, and alive_at accounts for it up to workspace, duplicates and generator states.
    CHECK(simulation.peak_bytes == *std::max_element(simulation.bytes_inside.begin(), simulation.bytes_inside.end()));
    Bytes alive = 0;
    for (ValueId id : alive_at(g, schedule, simulation.peak_action)) alive += charged_bytes(g.values[id]);
    CHECK(alive <= simulation.peak_bytes);
    CHECK(simulation.num_recomputed == static_cast<int>(sequence.size()) - g.num_ops());
  }
}

TEST_CASE("freeing later than liveness does never lowers the memory") {
  Random random(2);
  for (int round = 0; round < 500; ++round) {
    const TrainingGraph g = random_graph(random);
    const Schedule schedule = schedule_from_sequence(g, random_sequence(g, random));
    const Simulation simulation = simulate(g, schedule);
    // Swap one free with the compute after it: later, still allowed, and at no action fewer bytes.
    for (std::size_t at = 0; at + 1 < schedule.actions.size(); ++at) {
      const bool free_then_compute = schedule.actions[at].kind == Action::Kind::kFree &&
                                     schedule.actions[at + 1].kind == Action::Kind::kCompute && at + 1 != schedule.forward_end;
      if (!free_then_compute) continue;
      Schedule later = schedule;
      std::swap(later.actions[at], later.actions[at + 1]);
      if (verify(g, later)) continue;  // the compute makes that very value again
      CHECK(simulate(g, later).peak_bytes >= simulation.peak_bytes);
    }
  }
}

TEST_CASE("dropping dead recomputations never raises peak or time, and leaves none") {
  Random random(3);
  for (int round = 0; round < 2000; ++round) {
    const TrainingGraph g = random_graph(random);
    const std::vector<OpId> sequence = random_sequence(g, random);
    CAPTURE(graph_to_json(g));
    const std::vector<OpId> shorter = without_dead_recomputations(g, sequence);
    const Simulation before = simulate(g, schedule_from_sequence(g, sequence));
    const Simulation after = simulate(g, schedule_from_sequence(g, shorter));
    CHECK(after.peak_bytes <= before.peak_bytes);
    CHECK(after.time_us <= before.time_us);
    CHECK(without_dead_recomputations(g, shorter) == shorter);
  }
}

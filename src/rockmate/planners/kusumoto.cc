#include "rockmate/planners/kusumoto.h"

#include <algorithm>

#include "rockmate/planners/checkpoints.h"
#include "rockmate/planners/lower_set_program.h"
#include "rockmate/planners/trials.h"

namespace rockmate {
namespace {

constexpr int kBisections = 12;    // towards the largest B whose peak is within the budget
constexpr int kLowBisections = 8;  // towards the least B that has a strategy
constexpr int kBelow = 8;          // values of B between the two

// The sets with the smallest boundary among `stride` neighbours, the first and the last.
std::vector<OpSet> thinned(std::vector<OpSet> family, const std::vector<Bytes>& boundary_bytes, std::size_t most) {
  if (family.size() <= most) return family;
  const std::size_t stride = family.size() / (most - 2) + 1;
  std::vector<OpSet> kept{family.front()};
  for (std::size_t begin = 1; begin + 1 < family.size(); begin += stride) {
    const std::size_t end = std::min(begin + stride, family.size() - 1);
    const auto least = std::min_element(boundary_bytes.begin() + begin, boundary_bytes.begin() + end);
    kept.push_back(std::move(family[least - boundary_bytes.begin()]));
  }
  kept.push_back(std::move(family.back()));
  return kept;
}

// M(d(L)) of each closure.
std::vector<Bytes> boundaries(const TrainingGraph& graph, const std::vector<OpSet>& family) {
  const auto readers = readers_of(graph);
  const OpId num_forward = num_forward_ops(graph);
  std::vector<Bytes> bytes(family.size(), 0);
  for (std::size_t i = 0; i < family.size(); ++i) {
    for (OpId op = 0; op < num_forward; ++op) {
      if (!family[i].has(op)) continue;
      for (ValueId v : graph.ops[op].outputs) {
        const bool crosses = std::any_of(readers[v].begin(), readers[v].end(),
                                         [&](OpId reader) { return reader < num_forward && !family[i].has(reader); });
        if (crosses) bytes[i] += charged_bytes(graph.values[v]);
      }
    }
  }
  return bytes;
}

}  // namespace

PlannerAnswer kusumoto(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  Trials trials(graph, budget_bytes);
  trials.add(store_all_sequence(graph));
  if (trials.found() || !context.progress("lower sets", 0)) return std::move(trials).answer();
  std::vector<OpSet> family = all_lower_sets(graph, LowerSetProgram::kMaxLowerSets);
  const bool exact = !family.empty();
  if (!exact) {
    family = closures_of_ops(graph);
    const bool too_many = family.size() > LowerSetProgram::kMaxLowerSets;
    if (too_many) family = thinned(family, boundaries(graph, family), LowerSetProgram::kMaxLowerSets);
  }
  const std::string note = (exact ? "exact: all " : "approximate: ") + std::to_string(family.size()) + " lower sets";
  const LowerSetProgram program(graph, std::move(family), context);

  bool go_on = true;
  const auto attempt = [&](Bytes b, double done) -> std::optional<Bytes> {
    go_on = go_on && context.progress("lower sets", done);
    if (!go_on) return std::nullopt;
    const auto strategies = program.solve(b);
    if (!strategies) return std::nullopt;
    const auto& [time_centric, memory_centric] = *strategies;
    trials.add(Checkpoints(graph, memory_centric.segment_of).flat_sequence());
    return trials.add(Checkpoints(graph, time_centric.segment_of).flat_sequence()).peak_bytes;
  };
  Bytes low = 0, high = program.most_bytes();  // of B
  for (int i = 0; i < kBisections && go_on; ++i) {
    const Bytes b = (low + high) / 2;
    const auto peak = attempt(b, 0.2 + 0.4 * i / kBisections);
    (!peak || *peak <= budget_bytes ? low : high) = b;
  }
  const Bytes best = low;
  low = 0;
  high = best;
  for (int i = 0; i < kLowBisections && go_on; ++i) {
    const Bytes b = (low + high) / 2;
    (attempt(b, 0.6 + 0.2 * i / kLowBisections) ? high : low) = b;
  }
  for (int i = 1; i <= kBelow && go_on; ++i) {
    attempt(high + (best - high) * i / (kBelow + 1), 0.8 + 0.2 * i / kBelow);
  }
  return std::move(trials).answer(note);
}

}  // namespace rockmate

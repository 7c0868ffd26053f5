#include "rockmate/planners/hiremate.h"

#include <algorithm>
#include <map>

#include "rockmate/ilp/model.h"
#include "rockmate/partition/block_problem.h"
#include "rockmate/planners/graph_hierarchy.h"
#include "rockmate/planners/store_all.h"
#include "rockmate/schedule/verifier.h"
#include "rockmate/solvers/block_options.h"
#include "rockmate/solvers/evict.h"
#include "rockmate/solvers/keep.h"
#include "rockmate/solvers/sequence_memory.h"

namespace rockmate {
namespace {

constexpr int kLevels = 5;            // of each budget in a node's grid
constexpr int kMostOptions = 16;      // of a sub-graph
constexpr double kLeavesShare = 0.6;  // of the time, at most, for the leaves' options; the nodes and the root have the rest
constexpr double kNodesShare = 0.15;

struct Option {
  Bytes saved_bytes = 0, forward_peak_bytes = 0, backward_peak_bytes = 0;
  Micros cost_us = 0;
  bool runs_again = false;   // a node's whole forward before its backward
  std::vector<int> choices;  // a node: the option of each child; a leaf: the index of its block option

  bool no_better_than(const Option& other) const {
    return other.saved_bytes <= saved_bytes && other.forward_peak_bytes <= forward_peak_bytes &&
           other.backward_peak_bytes <= backward_peak_bytes && other.cost_us <= cost_us;
  }
};

void add_option(std::vector<Option>& options, Option option) {
  for (const Option& other : options) {
    if (option.no_better_than(other)) return;
  }
  std::erase_if(options, [&](const Option& other) { return other.no_better_than(option); });
  options.push_back(std::move(option));
}

// At most kMostOptions: the one that holds least, and others evenly over cost. All were found, but the programs above grow with
// them.
void thin(std::vector<Option>& options) {
  const auto by = [](auto number) { return [number](const Option& a, const Option& b) { return number(a) < number(b); }; };
  const auto peak = [](const Option& o) { return std::max(o.forward_peak_bytes, o.backward_peak_bytes); };
  if (static_cast<int>(options.size()) <= kMostOptions) return;
  std::vector<Option> kept{
      *std::min_element(options.begin(), options.end(), by(peak)),
      *std::min_element(options.begin(), options.end(), by([](const Option& o) { return o.saved_bytes; }))};
  std::stable_sort(options.begin(), options.end(), by([](const Option& o) { return o.cost_us; }));
  const std::size_t count = kMostOptions - kept.size();
  for (std::size_t i = 0; i < count; ++i) kept.push_back(options[i * (options.size() - 1) / (count - 1)]);
  options = std::move(kept);
}

class Hierarchy {
 public:
  Hierarchy(const TrainingGraph& graph, const PlannerContext& context)
      : graph_(graph), context_(context), hierarchy_(graph_hierarchy(graph)), options_(hierarchy_.nodes.size()) {}

  // False when the context ended it.
  bool solve() {
    classes_ = classify_blocks(graph_, hierarchy_.leaves);
    BlockSettings usual;
    usual.save_levels = usual.peak_levels = 6;
    usual.max_programs = 2;
    usual.max_states = 5000;
    usual.stop = context_.stop();
    const double seconds = context_.seconds_left();
    node_deadline_ = (1 - kLeavesShare - kNodesShare) * seconds;
    const int num_classes = static_cast<int>(classes_.problems.size());
    for (int i = 0; i < num_classes; ++i) {
      if (!context_.progress("leaves", static_cast<double>(i) / num_classes)) return false;
      BlockSettings settings = usual;  // what one leaf leaves of its time the next ones have
      fit_to_time(context_.seconds_left() - (1 - kLeavesShare) * seconds, num_classes - i, settings);
      block_plans_.push_back(block_options(classes_.problems[i], settings));
    }
    const int root = static_cast<int>(hierarchy_.nodes.size()) - 1;
    for (int n = 0; n < root; ++n) {
      if (!context_.progress("nodes", static_cast<double>(n) / root)) return false;
      const bool is_leaf = hierarchy_.nodes[n].children.empty();
      if (is_leaf)
        add_leaf(n);
      else
        add_node(n);
    }
    return true;
  }

  // The root's sequence for a budget; empty when its program has no solution.
  std::vector<OpId> sequence(Bytes budget_bytes) const {
    const int root = static_cast<int>(hierarchy_.nodes.size()) - 1;
    const std::optional<Option> option = choose(root, budget_bytes, budget_bytes - hierarchy_.leaves.gradient_bytes.back());
    if (!option) return {};
    std::vector<OpId> sequence;
    for (OpId op = 0; op < num_forward_ops(graph_); ++op) sequence.push_back(op);
    emit(root, *option, sequence);
    return without_dead_recomputations(graph_, sequence);
  }

 private:
  const std::vector<BlockOption>& block_options_of(int leaf) const { return block_plans_[classes_.class_of[leaf]].options; }

  void add_leaf(int n) {
    const std::vector<BlockOption>& plans = block_options_of(n);
    for (int i = 0; i < static_cast<int>(plans.size()); ++i) {
      Option option;
      option.saved_bytes = plans[i].saved_bytes;
      option.forward_peak_bytes = plans[i].forward_peak_bytes;
      option.backward_peak_bytes = plans[i].backward_peak_bytes + classes_.passing_bytes[n];
      option.cost_us = plans[i].recompute_us;
      option.choices = {i};
      add_option(options_[n], option);
    }
    thin(options_[n]);
  }

  void add_node(int n) {
    const std::vector<std::int64_t> form = numbers_of(n);
    const auto known = solved_.find(form);
    if (known != solved_.end()) {
      options_[n] = options_[known->second];
      return;
    }
    solved_[form] = n;
    Option fast, small;  // of each child, the fastest option and the one that holds least
    fast = together(n, pick(n, [](const Option& a, const Option& b) { return a.cost_us < b.cost_us; }));
    small = together(n, pick(n, [](const Option& a, const Option& b) { return peak(a) < peak(b); }));
    std::vector<Option> found;
    Micros forward_us = 0;
    for (OpId op = leaf(hierarchy_.nodes[n].first_leaf).begin; op < leaf(hierarchy_.nodes[n].end_leaf - 1).end; ++op) {
      if (graph_.ops[op].recomputable) forward_us += graph_.ops[op].time_us;
    }
    for (int p = 0; p < kLevels; ++p) {
      const Bytes most = peak(fast) - (peak(fast) - peak(small)) * p / (kLevels - 1);
      for (int s = 0; s < kLevels; ++s) {
        if (context_.seconds_left() < node_deadline_) break;
        const Bytes saved = fast.saved_bytes * (kLevels - 1 - s) / (kLevels - 1);
        const std::optional<Option> option = choose(n, most, saved);
        if (!option) break;  // nor at less
        if (s == 0) add_option(found, run_again(*option, forward_us));
        add_option(found, *option);
      }
    }
    for (const Option& option : {fast, small}) {
      add_option(found, run_again(option, forward_us));
      add_option(found, option);
    }
    thin(found);
    options_[n] = std::move(found);
  }

  static Option run_again(Option option, Micros forward_us) {
    option.saved_bytes = 0;
    option.cost_us += forward_us;
    option.backward_peak_bytes = std::max(option.backward_peak_bytes, option.forward_peak_bytes);
    option.runs_again = true;
    return option;
  }

  static Bytes peak(const Option& option) { return std::max(option.forward_peak_bytes, option.backward_peak_bytes); }
  const Block& leaf(int k) const { return hierarchy_.leaves.blocks[k]; }

  // Equal for nodes whose programs are equal.
  std::vector<std::int64_t> numbers_of(int n) const {
    std::vector<std::int64_t> numbers(hierarchy_.nodes[n].crossing_bytes.begin(), hierarchy_.nodes[n].crossing_bytes.end());
    Micros forward_us = 0;
    for (OpId op = leaf(hierarchy_.nodes[n].first_leaf).begin; op < leaf(hierarchy_.nodes[n].end_leaf - 1).end; ++op) {
      forward_us += graph_.ops[op].time_us;
    }
    numbers.push_back(static_cast<std::int64_t>(forward_us * 1000));
    for (int child : hierarchy_.nodes[n].children) {
      numbers.push_back(-1);
      for (const Option& o : options_[child]) {
        numbers.insert(numbers.end(), {o.saved_bytes, o.forward_peak_bytes, o.backward_peak_bytes,
                                       static_cast<std::int64_t>(o.cost_us * 1000), o.runs_again});
      }
    }
    return numbers;
  }

  template <typename Less>
  std::vector<int> pick(int n, Less less) const {
    std::vector<int> choices;
    for (int child : hierarchy_.nodes[n].children) {
      const auto& options = options_[child];
      choices.push_back(static_cast<int>(std::min_element(options.begin(), options.end(), less) - options.begin()));
    }
    return choices;
  }

  // What the node holds with these options of its children.
  Option together(int n, std::vector<int> choices) const {
    const auto& node = hierarchy_.nodes[n];
    Option sum;
    Bytes saved = 0;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const Option& option = options_[node.children[i]][choices[i]];
      const Bytes held = node.crossing_bytes[i] + saved;
      sum.forward_peak_bytes = std::max(sum.forward_peak_bytes, held + option.forward_peak_bytes);
      sum.backward_peak_bytes = std::max(sum.backward_peak_bytes, held + option.backward_peak_bytes);
      sum.cost_us += option.cost_us;
      saved += option.saved_bytes;
    }
    sum.saved_bytes = saved + (node.crossing_bytes.empty() ? 0 : node.crossing_bytes.back());
    sum.choices = std::move(choices);
    return sum;
  }

  // The H-ILP.
  std::optional<Option> choose(int n, Bytes most_peak, Bytes most_saved) const {
    const auto& node = hierarchy_.nodes[n];
    Bytes largest = 1;
    Micros longest = 1e-9;
    for (int child : node.children) {
      for (const Option& option : options_[child]) {
        largest = std::max(largest, peak(option));
        longest = std::max(longest, option.cost_us);
      }
    }
    const auto scaled = [&](Bytes bytes) { return static_cast<double>(bytes) / static_cast<double>(largest); };
    ilp::Model model;
    std::vector<std::vector<int>> x;
    std::vector<ilp::Term> saved;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const auto& options = options_[node.children[i]];
      std::vector<ilp::Term> one, forward = saved, backward = saved;
      x.emplace_back();
      for (const Option& option : options) {
        x[i].push_back(model.add_binary(100 * option.cost_us / longest));
        one.emplace_back(x[i].back(), 1);
        forward.emplace_back(x[i].back(), scaled(option.forward_peak_bytes));
        backward.emplace_back(x[i].back(), scaled(option.backward_peak_bytes));
        saved.emplace_back(x[i].back(), scaled(option.saved_bytes));
      }
      model.add_row(one, 1, 1);
      model.add_row(forward, -ilp::kInfinity, scaled(most_peak - node.crossing_bytes[i]));
      model.add_row(backward, -ilp::kInfinity, scaled(most_peak - node.crossing_bytes[i]));
    }
    const Bytes crossing = node.crossing_bytes.empty() ? 0 : node.crossing_bytes.back();
    model.add_row(saved, -ilp::kInfinity, scaled(most_saved - crossing));
    ilp::SolveOptions how;
    how.time_limit_s = std::min(2.0, std::max(context_.seconds_left(), 1e-3));
    how.stop = context_.stop();
    const ilp::Outcome outcome = ilp::solve(model, how);
    if (outcome.values.empty()) return std::nullopt;
    std::vector<int> choices;
    for (const auto& of_child : x) {
      const auto larger = [&](int a, int b) { return outcome.values[a] < outcome.values[b]; };
      choices.push_back(static_cast<int>(std::max_element(of_child.begin(), of_child.end(), larger) - of_child.begin()));
    }
    return together(n, std::move(choices));
  }

  void emit(int n, const Option& option, std::vector<OpId>& sequence) const {
    const auto& node = hierarchy_.nodes[n];
    if (node.children.empty()) {
      for (OpId op : block_options_of(n)[option.choices[0]].backward()) sequence.push_back(classes_.op_of[n][op]);
      return;
    }
    if (option.runs_again) {
      for (OpId op = leaf(node.first_leaf).begin; op < leaf(node.end_leaf - 1).end; ++op) {
        if (graph_.ops[op].recomputable) sequence.push_back(op);
      }
    }
    for (std::size_t i = node.children.size(); i-- > 0;) {
      emit(node.children[i], options_[node.children[i]][option.choices[i]], sequence);
    }
  }

  const TrainingGraph& graph_;
  const PlannerContext& context_;
  GraphHierarchy hierarchy_;
  BlockClasses classes_;
  std::vector<BlockOptions> block_plans_;     // by class of leaves
  std::vector<std::vector<Option>> options_;  // by node
  std::map<std::vector<std::int64_t>, int> solved_;
  double node_deadline_ = 0;  // with fewer seconds left, nodes get the options that need no program
};

}  // namespace

PlannerAnswer hiremate(const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  if (auto plain = store_all_within(graph, budget_bytes)) return *plain;
  PlannerAnswer answer;
  Hierarchy hierarchy(graph, context);
  if (!hierarchy.solve()) return answer;
  Micros best_us = 0;
  std::vector<OpId> lowest = store_all_sequence(graph);
  for (int percent = 140; percent >= 40 && context.progress("root", (140 - percent) / 100.0); percent -= 10) {
    std::vector<OpId> sequence = hierarchy.sequence(budget_bytes / 100 * percent);
    if (sequence.empty()) break;
    const Bytes peak_bytes = SequenceMemory(graph, sequence).peak_bytes();
    if (answer.least_peak_bytes == 0 || peak_bytes < answer.least_peak_bytes) {
      answer.least_peak_bytes = peak_bytes;
      lowest = sequence;
    }
    if (peak_bytes > budget_bytes || verify(graph, schedule_from_sequence(graph, sequence))) continue;
    sequence = keep_within(graph, std::move(sequence), budget_bytes);
    const Micros time_us = sequence_time_us(graph, sequence);
    if (!answer.sequence.empty() && time_us >= best_us) continue;
    answer.sequence = std::move(sequence);
    best_us = time_us;
  }
  if (answer.sequence.empty()) {
    const auto go_on = [&](const std::vector<OpId>&, Bytes) { return !context.expired(); };
    lowest = evict(graph, std::move(lowest), budget_bytes, go_on);
    answer.least_peak_bytes = SequenceMemory(graph, lowest).peak_bytes();
    if (answer.least_peak_bytes <= budget_bytes) answer.sequence = keep_within(graph, std::move(lowest), budget_bytes);
    answer.note = "below what the sub-graphs' options reach, values that cross between them were dropped one by one";
  }
  return answer;
}

}  // namespace rockmate

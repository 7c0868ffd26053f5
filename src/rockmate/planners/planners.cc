#include "rockmate/planners/planners.h"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "rockmate/planner/judge.h"
#include "rockmate/planners/auto.h"
#include "rockmate/planners/checkmate.h"
#include "rockmate/planners/checkmate_lp.h"
#include "rockmate/planners/chen.h"
#include "rockmate/planners/dtr.h"
#include "rockmate/planners/fastsa.h"
#include "rockmate/planners/hiremate.h"
#include "rockmate/planners/kusumoto.h"
#include "rockmate/planners/lower_bound.h"
#include "rockmate/planners/memory_budget.h"
#include "rockmate/planners/moccasin.h"
#include "rockmate/planners/rockmate.h"
#include "rockmate/planners/rotor.h"
#include "rockmate/planners/store_all.h"
#include "rockmate/planners/twremat.h"

namespace rockmate {
namespace {

const std::array kPlanners = {
    PlannerEntry{"store-all", "", "keeps everything: no recomputation", store_all, false},
    PlannerEntry{"chen-sqrt", "Chen et al. 2016, arXiv 1604.06174", "checkpoints segments of about equal size", chen_sqrt, true,
                 true},
    PlannerEntry{"chen-recursive", "Chen et al. 2016, arXiv 1604.06174", "segments within segments: logarithmic memory",
                 chen_recursive, true, true},
    PlannerEntry{"kusumoto", "Kusumoto et al. 2019, arXiv 1905.11722", "checkpoints along the best sequence of lower sets",
                 kusumoto, true, true},
    PlannerEntry{"rotor", "Beaumont et al. 2019, arXiv 1911.13214", "a chain whose blocks keep all or nothing, optimal", rotor,
                 true, true},
    PlannerEntry{"rotor-layers", "Beaumont et al. 2019, arXiv 1911.13214", "the same with whole layers as blocks", rotor_layers,
                 true, true},
    PlannerEntry{"checkmate", "Jain et al. 2019, arXiv 1910.02653", "the whole graph as one integer program", checkmate, false},
    PlannerEntry{"checkmate-lp", "Jain et al. 2019, arXiv 1910.02653", "its linear relaxation, rounded in two phases",
                 checkmate_lp, false},
    PlannerEntry{"dtr", "Kirisame et al. 2020, arXiv 2006.09616", "evicts online by cost, size and staleness", dtr, false,
                 true},
    PlannerEntry{"memory-budget", "PyTorch 2.13", "PyTorch's activation_memory_budget: min cut and knapsack", memory_budget,
                 true, true},
    PlannerEntry{"twremat", "Kumar et al. 2019, NeurIPS", "divide and conquer over a tree decomposition", twremat, false},
    PlannerEntry{"moccasin", "Bartan et al. 2023, arXiv 2304.14463",
                 "each value computed at most twice, in retention intervals", moccasin, false},
    PlannerEntry{"fastsa", "Killamsetty et al. 2023, NeurIPS", "simulated annealing of the whole sequence, order included",
                 fastsa, false},
    PlannerEntry{"rockmate", "Zhao et al. 2023, arXiv 2307.01236",
                 "block options by search and ILP, the chain by dynamic programming", rockmate_planner, false},
    PlannerEntry{"rockmate-chain", "Zhao et al. 2023, arXiv 2307.01236", "the same, and nothing after the chain",
                 rockmate_chain, false},
    PlannerEntry{"hiremate", "Gusak et al. 2025, ICML", "recursive partition, an integer program picks options of sub-graphs",
                 hiremate},
    PlannerEntry{"auto", "", "the default: the best of all, polished as a whole", auto_planner, false},
};

// What the planner says, and nothing else, becomes the result.
void judge(const TrainingGraph& graph, Bytes budget_bytes, const PlannerEntry& planner, const PlannerAnswer& answer,
           PlannerResult& result) {
  if (!answer.sequence.empty()) {
    std::optional<Plan> plan = judged_plan(graph, answer.sequence, planner.name);
    if (plan && plan->peak_bytes <= budget_bytes) result.plan = std::move(plan);
  }
}

}  // namespace

double PlannerContext::seconds_left() const {
  const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begin_;
  return options_.time_limit_s - gone.count();
}

bool PlannerContext::progress(const std::string& stage, double done) const {
  const bool go_on = !options_.on_progress || options_.on_progress({stage, std::clamp(done, 0.0, 1.0)});
  return go_on && !expired();
}

PlannerContext PlannerContext::within(double seconds) const {
  PlannerOptions options = options_;
  options.time_limit_s = std::max(std::min(seconds, seconds_left()), 1e-3);
  return PlannerContext(std::move(options), stop_);
}

std::span<const PlannerEntry> planners() { return kPlanners; }

const PlannerEntry& find_planner(const std::string& name) {
  std::string all;
  for (const PlannerEntry& planner : kPlanners) {
    if (planner.name == name) return planner;
    all += (all.empty() ? "" : ", ") + std::string(planner.name);
  }
  throw std::invalid_argument("[plan] there is no planner '" + name + "', choose one of " + all);
}

PlannerAnswer ask(const PlannerEntry& planner, const TrainingGraph& graph, Bytes budget_bytes, const PlannerContext& context) {
  const std::optional<TrainingGraph> divided = planner.needs_boundary ? with_boundary(graph) : std::nullopt;
  if (!planner.needs_boundary || graph.has_boundary || divided) {
    return planner.run(divided ? *divided : graph, budget_bytes, context);
  }
  PlannerAnswer answer;
  answer.note =
      std::string(planner.name) + " works on training steps, and nothing divides this graph into forward and backward";
  return answer;
}

PlannerResult run_planner(const PlannerEntry& planner, const TrainingGraph& graph, Bytes budget_bytes,
                          const PlannerContext& context) {
  check_graph(graph);
  PlannerResult result;
  const auto begin = std::chrono::steady_clock::now();
  const PlannerAnswer answer = ask(planner, graph, budget_bytes, context);
  judge(graph, budget_bytes, planner, answer, result);
  result.plan_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  Micros plain_us = 0;
  for (const Op& op : graph.ops) plain_us += op.time_us;
  const Micros bound_us = std::max(answer.bound_us, lower_bound_us(graph, budget_bytes));
  result.lower_bound = plain_us > 0 ? bound_us / plain_us : 0;
  result.note = answer.note;
  result.min_budget_bound_bytes = peak_floor(graph);
  result.min_budget_bytes = answer.least_peak_bytes;
  if (result.plan) {
    const Bytes peak = result.plan->peak_bytes;
    result.min_budget_bytes = answer.least_peak_bytes > 0 ? std::min(answer.least_peak_bytes, peak) : peak;
    const bool at_the_bound = result.plan->overhead <= result.lower_bound * (1 + kOptimalGap) + 1e-12;
    result.lower_bound = std::min(result.lower_bound, result.plan->overhead);  // equal up to rounding
    result.status = answer.proved || at_the_bound ? PlannerStatus::kOptimal : PlannerStatus::kFeasible;
  } else {
    result.status = !answer.proved && context.expired() ? PlannerStatus::kTimeLimit : PlannerStatus::kInfeasible;
  }
  return result;
}

std::string name_of(PlannerStatus status) {
  switch (status) {
    case PlannerStatus::kOptimal:
      return "optimal";
    case PlannerStatus::kFeasible:
      return "feasible";
    case PlannerStatus::kInfeasible:
      return "infeasible";
    case PlannerStatus::kTimeLimit:
      return "time_limit";
  }
  return "";
}

}  // namespace rockmate

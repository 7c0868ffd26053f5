// Every planner on the same cases: what it returns is judged by the verifier, the simulator, and on small graphs the exhaustive
// oracle. A new planner adds its row to kCases.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>

#include "rockmate/graph/file.h"
#include "rockmate/graph/json.h"
#include "rockmate/planner/judge.h"
#include "rockmate/planners/planners.h"
#include "tests/oracle/exhaustive.h"

using namespace rockmate;

namespace {

struct Case {
  const char* planner;
  bool recomputes;  // finds a plan below the store-all peak of chain4
};

const std::vector<Case> kCases = {
    {"store-all", false},    {"chen-sqrt", true}, {"chen-recursive", true}, {"kusumoto", true}, {"rotor", false},
    {"rotor-layers", false}, {"checkmate", true}, {"checkmate-lp", true},   {"dtr", true},      {"memory-budget", true},
    {"twremat", true},       {"moccasin", true},  {"fastsa", true},         {"rockmate", true}, {"rockmate-chain", true},
    {"hiremate", true},      {"auto", true},
};

TrainingGraph load(const std::string& name) {
  return graph_from_json(read_file(std::string(ROCKMATE_SOURCE_DIR) + "/tests/graphs/" + name + ".json"));
}

PlannerResult run(const std::string& planner, const TrainingGraph& graph, Bytes budget) {
  PlannerOptions options;
  options.time_limit_s = 10;
  options.threads = 1;
  return run_planner(find_planner(planner), graph, budget, PlannerContext(options));
}

}  // namespace

TEST_CASE("the table of cases names every planner") {
  std::map<std::string, int> rows;
  for (const Case& row : kCases) ++rows[row.planner];
  for (const PlannerEntry& planner : planners()) {
    CAPTURE(planner.name);
    CHECK(rows[planner.name] == 1);
  }
  CHECK(rows.size() == planners().size());
}

TEST_CASE("no planner beats the oracle, exceeds the budget or claims a bound above it") {
  for (const char* name : {"chain4", "dropout"}) {
    const TrainingGraph graph = load(name);
    testing::Exhaustive oracle(graph);
    const Plan plain = *judged_plan(graph, store_all_sequence(graph), "");
    for (int percent = 100; percent >= 40; percent -= 10) {
      const Bytes budget = plain.peak_bytes * percent / 100;
      const Micros least = oracle.least_recomputation(budget);
      for (const Case& row : kCases) {
        CAPTURE(name);
        CAPTURE(percent);
        CAPTURE(row.planner);
        const PlannerResult result = run(row.planner, graph, budget);
        CHECK(result.lower_bound * plain.time_us <= least * (1 + 1e-9) + 1e-9);
        if (result.min_budget_bytes > 0) CHECK(result.min_budget_bytes >= result.min_budget_bound_bytes);
        if (!result.plan) continue;
        CHECK(result.plan->peak_bytes <= budget);
        CHECK(result.plan->time_us - plain.time_us >= least * (1 - 1e-9));
      }
    }
  }
}

TEST_CASE("at the store-all peak every planner has a plan; auto's recomputes nothing") {
  const TrainingGraph graph = load("chain4");
  const Plan plain = *judged_plan(graph, store_all_sequence(graph), "");
  for (const Case& row : kCases) {
    CAPTURE(row.planner);
    const PlannerResult full = run(row.planner, graph, plain.peak_bytes);
    REQUIRE(full.plan);
    if (std::string(row.planner) == "auto") CHECK(full.plan->overhead == 0);
    CHECK(run(row.planner, graph, plain.peak_bytes - 1).plan.has_value() == row.recomputes);
  }
}

TEST_CASE("an unknown planner is refused by name") {
  CHECK_THROWS_WITH_AS(find_planner("rotro"), doctest::Contains("store-all"), std::invalid_argument);
}

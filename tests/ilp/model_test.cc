#include "rockmate/ilp/model.h"

#include <doctest/doctest.h>

#include <thread>

using namespace rockmate::ilp;

TEST_CASE("the example of model.h") {
  // 5 x + y >= 4 at cost 3 x + y: x = 1 costs 3, y = 4 costs 4.
  Model model;
  const int x = model.add_binary(3), y = model.add_continuous(0, 10, 1);
  model.add_row({{x, 5.0}, {y, 1.0}}, 4, kInfinity);
  const Outcome outcome = solve(model);
  CHECK(outcome.status == Status::kOptimal);
  CHECK(outcome.objective == doctest::Approx(3));
  CHECK(outcome.values[x] == doctest::Approx(1));
  CHECK(outcome.values[y] == doctest::Approx(0));
  CHECK(outcome.bound <= outcome.objective + 1e-9);
}

TEST_CASE("outcomes are values") {
  Model infeasible;
  const int x = infeasible.add_binary(1);
  infeasible.add_row({{x, 1.0}}, 2, kInfinity);
  CHECK(solve(infeasible).status == Status::kInfeasible);

  SolveOptions no_time;
  no_time.time_limit_s = 0;
  CHECK(solve(infeasible, no_time).status == Status::kUnknown);

  Model empty;
  CHECK(solve(empty).status == Status::kOptimal);
  empty.add_row({}, 1, kInfinity);
  CHECK(solve(empty).status == Status::kInfeasible);
}

namespace {

// Many equal items of which a third must be taken with weights that never add up: long to prove.
Model stubborn(int items) {
  Model model;
  std::vector<Term> weights;
  for (int i = 0; i < items; ++i) weights.emplace_back(model.add_binary(2 * i % 7 + 3), 2 * (i % 5) + 4);
  model.add_row(weights, 2 * items + 1, 2 * items + 1);
  return model;
}

}  // namespace

TEST_CASE("a solve stops when asked to") {
  std::atomic<bool> stop{true};
  SolveOptions options;
  options.stop = &stop;
  options.relative_gap = 0;
  const Outcome outcome = solve(stubborn(60), options);
  CHECK(outcome.status != Status::kFeasible);  // infeasible by parity when presolve sees it, else stopped without a solution
}

TEST_CASE("a start is used") {
  Model model;
  std::vector<Term> all;
  for (int i = 0; i < 20; ++i) all.emplace_back(model.add_binary(1 + i % 3), 1 + i % 4);
  model.add_row(all, 17, kInfinity);
  SolveOptions options;
  for (const auto& [variable, weight] : all) options.start.emplace_back(variable, 1);
  const Outcome outcome = solve(model, options);
  CHECK(outcome.status == Status::kOptimal);
}

TEST_CASE("several threads solve at once") {
  std::vector<double> objectives(4);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&objectives, t] {
        Model model;
        std::vector<Term> all;
        for (int i = 0; i < 15; ++i) all.emplace_back(model.add_binary(1), 1);
        model.add_row(all, t + 1, kInfinity);
        objectives[t] = solve(model).objective;
      });
    }
  }
  for (int t = 0; t < 4; ++t) CHECK(objectives[t] == doctest::Approx(t + 1));
}

TEST_CASE("the relaxation drops integrality, and a fixed variable stays") {
  // 2 x >= 1: x = 1/2 when it may, else 1; with x fixed at 1, y >= 1 - x costs nothing.
  Model model;
  const int x = model.add_binary(1), y = model.add_continuous(0, 5, 3);
  model.add_row({{x, 2}}, 1, kInfinity);
  model.add_row({{x, 1}, {y, 1}}, 1, kInfinity);
  CHECK(model.has_integers());
  CHECK(model.num_nonzeros() == 3);
  const Outcome relaxed = solve(model, {.relax = true});
  REQUIRE(relaxed.status == Status::kOptimal);
  CHECK(relaxed.objective == doctest::Approx(1));  // x = 1 is cheaper than y = 1/2
  CHECK(relaxed.bound == doctest::Approx(1));
  model.fix(y, 5);
  CHECK(solve(model, {.relax = true}).objective == doctest::Approx(15.5));
  CHECK(solve(model).objective == doctest::Approx(16));
}

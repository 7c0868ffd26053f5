// A mixed-integer linear program and its solution: the only door to HiGHS.
//
//   Model model;
//   int x = model.add_binary(/*cost=*/3), y = model.add_continuous(0, 10, /*cost=*/1);
//   model.add_row({{x, 5.0}, {y, 1.0}}, 4, kInfinity);   // 5 x + y >= 4
//   Outcome outcome = solve(model, {.time_limit_s = 1});  // optimal: x = 1, y = 0, objective 3
//
// The outcome is a value: an infeasible model or a time limit is no error. One thread per solve; several models can be solved
// by several threads at the same time.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace rockmate::ilp {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Term = std::pair<int, double>;  // variable, coefficient

enum class Status : std::uint8_t {
  kOptimal,     // within the gap
  kFeasible,    // stopped early with a solution
  kInfeasible,  // proved
  kUnknown,     // stopped early, or failed, without a solution
};

struct Outcome {
  Status status = Status::kUnknown;
  double objective = kInfinity;
  double bound = -kInfinity;  // no solution is better than this
  std::vector<double> values;
};

class Model {
 public:
  int add_binary(double cost = 0) { return add_variable(0, 1, cost, true); }
  int add_continuous(double lower, double upper, double cost = 0) { return add_variable(lower, upper, cost, false); }
  // lower <= sum of terms <= upper; each variable at most once in the terms.
  void add_row(const std::vector<Term>& terms, double lower, double upper);
  // Sets a variable that has been added.
  void fix(int variable, double value) { lower_[variable] = upper_[variable] = value; }

  int num_variables() const { return static_cast<int>(cost_.size()); }
  int num_rows() const { return static_cast<int>(row_lower_.size()); }
  std::int64_t num_nonzeros() const { return static_cast<std::int64_t>(index_.size()); }
  bool has_integers() const;
  // Of a model without variables: every row is a comparison with 0.
  Outcome empty_outcome() const;

 private:
  friend class Highs;
  int add_variable(double lower, double upper, double cost, bool integer);

  std::vector<double> cost_, lower_, upper_;
  std::vector<std::int32_t> integer_;
  std::vector<double> row_lower_, row_upper_;
  std::vector<std::int32_t> row_start_{0}, index_;
  std::vector<double> coefficient_;
};

struct SolveOptions {
  double time_limit_s = 60;
  int node_limit = 5000;                    // branch-and-bound nodes: a limit that does not depend on the machine's load
  double relative_gap = 1e-3;               // called optimal at this distance from the bound
  bool relax = false;                       // solve the linear relaxation: every variable continuous
  std::vector<Term> start;                  // values to begin from, at least for the binaries; empty for none
  const std::atomic<bool>* stop = nullptr;  // polled during the solve; true ends it like a time limit
};

Outcome solve(const Model& model, const SolveOptions& options = {});

}  // namespace rockmate::ilp

#include "rockmate/ilp/model.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "interfaces/highs_c_api.h"

namespace rockmate::ilp {

int Model::add_variable(double lower, double upper, double cost, bool integer) {
  cost_.push_back(cost);
  lower_.push_back(lower);
  upper_.push_back(upper);
  integer_.push_back(integer ? kHighsVarTypeInteger : kHighsVarTypeContinuous);
  return num_variables() - 1;
}

void Model::add_row(const std::vector<Term>& terms, double lower, double upper) {
  for (const auto& [variable, coefficient] : terms) {
    assert(variable >= 0 && variable < num_variables());
    index_.push_back(variable);
    coefficient_.push_back(coefficient);
  }
  row_start_.push_back(static_cast<std::int32_t>(index_.size()));
  row_lower_.push_back(lower);
  row_upper_.push_back(upper);
}

bool Model::has_integers() const {
  return std::any_of(integer_.begin(), integer_.end(), [](std::int32_t type) { return type == kHighsVarTypeInteger; });
}

Outcome Model::empty_outcome() const {
  for (int row = 0; row < num_rows(); ++row) {
    if (row_lower_[row] > 0 || row_upper_[row] < 0) return {Status::kInfeasible, kInfinity, kInfinity, {}};
  }
  return {Status::kOptimal, 0, 0, {}};
}

// Owns one HiGHS instance.
class Highs {
 public:
  Highs() : handle_(Highs_create()) {}
  ~Highs() { Highs_destroy(handle_); }
  Highs(const Highs&) = delete;
  Highs& operator=(const Highs&) = delete;

  Outcome solve(const Model& model, const SolveOptions& options) {
    Highs_setBoolOptionValue(handle_, "output_flag", 0);
    Highs_setIntOptionValue(handle_, "threads", 1);
    Highs_setStringOptionValue(handle_, "parallel", "off");
    Highs_setIntOptionValue(handle_, "random_seed", 1);
    Highs_setDoubleOptionValue(handle_, "time_limit", std::max(options.time_limit_s, 0.0));
    Highs_setIntOptionValue(handle_, "mip_max_nodes", options.node_limit);
    Highs_setDoubleOptionValue(handle_, "mip_rel_gap", options.relative_gap);
    const bool is_linear = options.relax || !model.has_integers();
    pass(model, is_linear);
    if (!is_linear) set_start(options.start);
    if (options.stop != nullptr) {
      Highs_setCallback(handle_, &Highs::on_callback, const_cast<std::atomic<bool>*>(options.stop));
      Highs_startCallback(handle_, kHighsCallbackMipInterrupt);
      Highs_startCallback(handle_, kHighsCallbackSimplexInterrupt);
      Highs_startCallback(handle_, kHighsCallbackIpmInterrupt);
    }
    if (Highs_run(handle_) == kHighsStatusError) return {};
    return outcome(model, is_linear);
  }

 private:
  static void on_callback(int, const char*, const HighsCallbackDataOut*, HighsCallbackDataIn* in, void* stop) {
    if (in != nullptr && static_cast<const std::atomic<bool>*>(stop)->load(std::memory_order_relaxed)) in->user_interrupt = 1;
  }

  void set_start(const std::vector<Term>& start) {
    std::vector<HighsInt> index;
    std::vector<double> value;
    for (const auto& [variable, number] : start) {
      index.push_back(variable);
      value.push_back(number);
    }
    if (!start.empty()) Highs_setSparseSolution(handle_, static_cast<HighsInt>(start.size()), index.data(), value.data());
  }

  void pass(const Model& model, bool is_linear) {
    static_assert(sizeof(HighsInt) == sizeof(std::int32_t));
    const auto nonzeros = static_cast<HighsInt>(model.index_.size());
    const int columns = model.num_variables(), rows = model.num_rows();
    if (is_linear) {
      Highs_passLp(handle_, columns, rows, nonzeros, kHighsMatrixFormatRowwise, kHighsObjSenseMinimize, 0.0, model.cost_.data(),
                   model.lower_.data(), model.upper_.data(), model.row_lower_.data(), model.row_upper_.data(),
                   model.row_start_.data(), model.index_.data(), model.coefficient_.data());
    } else {
      Highs_passMip(handle_, columns, rows, nonzeros, kHighsMatrixFormatRowwise, kHighsObjSenseMinimize, 0.0,
                    model.cost_.data(), model.lower_.data(), model.upper_.data(), model.row_lower_.data(),
                    model.row_upper_.data(), model.row_start_.data(), model.index_.data(), model.coefficient_.data(),
                    model.integer_.data());
    }
  }

  Outcome outcome(const Model& model, bool is_linear) {
    Outcome result;
    const HighsInt model_status = Highs_getModelStatus(handle_);
    if (model_status == kHighsModelStatusInfeasible) {
      result.status = Status::kInfeasible;
      result.bound = kInfinity;
      return result;
    }
    HighsInt solution_status = kHighsSolutionStatusNone;
    Highs_getIntInfoValue(handle_, "primal_solution_status", &solution_status);
    if (!is_linear) Highs_getDoubleInfoValue(handle_, "mip_dual_bound", &result.bound);
    if (solution_status == kHighsSolutionStatusFeasible) {
      result.values.resize(model.num_variables());
      std::vector<double> row_values(model.num_rows());
      Highs_getSolution(handle_, result.values.data(), nullptr, row_values.data(), nullptr);
      result.objective = Highs_getObjectiveValue(handle_);
      result.status = model_status == kHighsModelStatusOptimal ? Status::kOptimal : Status::kFeasible;
      if (is_linear && result.status == Status::kOptimal) result.bound = result.objective;
    }
    return result;
  }

  void* handle_;
};

Outcome solve(const Model& model, const SolveOptions& options) {
  if (options.time_limit_s <= 0) return {};
  if (model.num_variables() == 0) return model.empty_outcome();
  return Highs().solve(model, options);
}

}  // namespace rockmate::ilp

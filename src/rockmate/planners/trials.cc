#include "rockmate/planners/trials.h"

#include <algorithm>

#include "rockmate/schedule/simulator.h"

namespace rockmate {

Trials::Price Trials::add(const std::vector<OpId>& sequence) {
  std::vector<OpId> lean = without_dead_recomputations(graph_, sequence);
  const Simulation simulation = simulate(graph_, schedule_from_sequence(graph_, lean));
  const Price price{simulation.peak_bytes, simulation.time_us};
  least_peak_bytes_ = least_peak_bytes_ == 0 ? price.peak_bytes : std::min(least_peak_bytes_, price.peak_bytes);
  const bool better = !found() || price.time_us < best_price_.time_us ||
                      (price.time_us == best_price_.time_us && price.peak_bytes < best_price_.peak_bytes);
  if (price.peak_bytes <= budget_bytes_ && better) {
    best_ = std::move(lean);
    best_price_ = price;
  }
  return price;
}

PlannerAnswer Trials::answer(std::string note) && {
  PlannerAnswer answer;
  answer.sequence = std::move(best_);
  answer.least_peak_bytes = least_peak_bytes_;
  answer.note = std::move(note);
  return answer;
}

}  // namespace rockmate

#include "rockmate/planner/frontier.h"

#include "rockmate/solvers/sequence_memory.h"

namespace rockmate {

bool Frontier::add(std::vector<OpId> sequence, const std::string& planner) {
  const Bytes peak_bytes = SequenceMemory(graph_, sequence).peak_bytes();
  const Micros time_us = sequence_time_us(graph_, sequence);
  const Candidate* known = at(peak_bytes);
  if (known != nullptr && known->time_us <= time_us) return false;
  auto next = candidates_.lower_bound(peak_bytes);
  while (next != candidates_.end() && next->second.time_us >= time_us) next = candidates_.erase(next);
  candidates_[peak_bytes] = {std::move(sequence), peak_bytes, time_us, planner};
  return true;
}

const Candidate* Frontier::at(Bytes budget) const {
  const auto next = candidates_.upper_bound(budget);
  return next == candidates_.begin() ? nullptr : &std::prev(next)->second;
}

const Candidate* Frontier::above(Bytes budget) const {
  const auto next = candidates_.upper_bound(budget);
  return next == candidates_.end() ? nullptr : &next->second;
}

}  // namespace rockmate

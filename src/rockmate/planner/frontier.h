// The sequences that no other one beats in peak and time both, priced by the solvers' own count of memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

struct Candidate {
  std::vector<OpId> sequence;
  Bytes peak_bytes = 0;
  Micros time_us = 0;
  std::string planner;
};

class Frontier {
 public:
  explicit Frontier(const TrainingGraph& graph) : graph_(graph) {}

  // Keeps the sequence when nothing at hand is at least as good in both; returns whether it did.
  bool add(std::vector<OpId> sequence, const std::string& planner);

  // The fastest within the budget; nullptr when there is none.
  const Candidate* at(Bytes budget) const;
  // The one with the least peak above the budget: faster than at(budget). nullptr when there is none.
  const Candidate* above(Bytes budget) const;

  // Ascending peak, strictly descending time.
  const std::map<Bytes, Candidate>& all() const { return candidates_; }

 private:
  const TrainingGraph& graph_;
  std::map<Bytes, Candidate> candidates_;  // by peak
};

}  // namespace rockmate

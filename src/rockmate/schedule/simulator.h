// The simulator: what a schedule costs, byte by byte. Shares no code with the solvers; on the CPU its peak is the peak that the
// allocation meter measures.
#pragma once

#include "rockmate/schedule/schedule.h"

namespace rockmate {

struct Simulation {
  Bytes peak_bytes = 0;             // the most bytes held at once, workspace included
  std::size_t peak_action = 0;      // first action at which the peak is reached
  Micros time_us = 0;               // sum over all computes
  Micros recompute_time_us = 0;     // the part of it that is spent on ops computed before
  std::int32_t num_recomputed = 0;  // computes beyond each op's first
  // One entry per action: bytes held while it runs (for a free: before it) and after it.
  std::vector<Bytes> bytes_inside;
  std::vector<Bytes> bytes_after;

  // Time over the time with no recomputation, minus one.
  double overhead() const;
};

// Assumes that verify(graph, schedule) found nothing; throws std::invalid_argument otherwise.
Simulation simulate(const TrainingGraph& graph, const Schedule& schedule);

// Charged values alive while action `at` runs (outputs included), largest first: who holds the memory at the peak.
std::vector<ValueId> alive_at(const TrainingGraph& graph, const Schedule& schedule, std::size_t at);

}  // namespace rockmate

// The parts of a plan's page that go through the model block by block.
#pragma once

#include <string>

#include "rockmate/schedule/simulator.h"

namespace rockmate {

// Who holds the memory at the peak: by block, by what was called, by value.
std::string peak_section(const TrainingGraph& graph, const Schedule& schedule, const Simulation& simulation);

// What is kept, and what is recomputed how often and for how long; a table of many blocks is folded.
std::string blocks_section(const TrainingGraph& graph, const Schedule& schedule);

// When each block runs forward, again and backward.
std::string timeline_section(const TrainingGraph& graph, const Schedule& schedule);

}  // namespace rockmate

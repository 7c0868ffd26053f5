// The parts of a plan's page that go through the model block by block.
#pragma once

#include "rockmate/report/page.h"
#include "rockmate/schedule/simulator.h"

namespace rockmate {

// Who holds the memory at the peak: by block, by what was called, by value.
Section peak_section(const TrainingGraph& graph, const Schedule& schedule, const Simulation& simulation);

// What is kept, and what is recomputed how often and for how long; a table of many blocks is folded.
Section blocks_section(const TrainingGraph& graph, const Schedule& schedule);

// When each block runs forward, again and backward.
Section timeline_section(const TrainingGraph& graph, const Schedule& schedule);

}  // namespace rockmate

// The verifier: is this schedule a training step? Naive on purpose, written apart from every solver. A schedule that it refuses
// never reaches a user.
#pragma once

#include <optional>
#include <string>

#include "rockmate/schedule/schedule.h"

namespace rockmate {

enum class ScheduleError : std::uint8_t {
  kBadId,              // an op or value that the graph does not have
  kInputNotAlive,      // an op runs while one of its inputs is not there
  kFreeNotAlive,       // a free of a value that is not alive, or that is resident
  kFreedTooEarly,      // a value is gone although its retention says it must be there
  kForwardOpCount,     // a forward op does not run exactly once in the forward pass
  kForwardOrder,       // forward ops out of graph order in the forward pass
  kBackwardInForward,  // a backward op, or a tangent's use, before the forward pass ends
  kBackwardOpCount,    // a backward op does not run exactly once
  kRandomOrder,        // random ops of the backward pass (or of a graph in one pass) out of graph order
  kNotRecomputable,    // an op with side effects runs twice
  kLeftAlive,          // an activation or gradient with no retention is still alive at the end
};

struct ScheduleFault {
  ScheduleError error;
  std::size_t action;   // index into the schedule's actions; actions.size() for what is wrong at the end
  std::string message;  // "[verify] action 12, compute aten.mm.default 'mm_3': input 'relu_1' is not alive"
};

// The first fault, or nothing when the schedule is good.
std::optional<ScheduleFault> verify(const TrainingGraph& graph, const Schedule& schedule);

}  // namespace rockmate

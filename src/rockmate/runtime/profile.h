// What one program costs: its time, its bytes, what it returns. Used on programs of one op, to price a graph.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "rockmate/runtime/program.h"

namespace rockmate {

// One tensor that the program returned; lists are taken apart.
struct OutputProfile {
  std::uintptr_t storage = 0;  // equal for outputs that share one
  std::int64_t storage_bytes = 0;
  std::vector<std::int64_t> strides;
  bool aliases_input = false;
};

// One allocation or free of a run, in order: the bytes inside at any moment, with or without some of the outputs, follow.
struct ProfileEvent {
  std::int64_t bytes = 0;  // negative for a free
  int output = -1;         // the first output that the allocation becomes; -1 for workspace
};

struct Profile {
  double time_us = 0;           // median over the runs
  std::int64_t peak_bytes = 0;  // the most bytes inside, outputs included, beyond what was held when it began
  std::int64_t kept_bytes = 0;  // bytes more when it ended, outputs alive
  int num_runs = 0;             // timed ones
  std::vector<OutputProfile> outputs;
  std::vector<ProfileEvent> events;
};

struct ProfileOptions {
  double min_time_us = 2000;  // keep running until this much time is spent: longer is steadier
  int max_runs = 50;          // but never more often than this
};

// Runs the program on `inputs`, which it leaves as they are (unless its ops write into them): twice to warm up, once under a
// meter, then timed. The device is that of the first input that is not on the CPU, or else the CPU; `check_interrupt` is called
// between runs and may throw.
Profile profile(const Program& program, const std::vector<c10::IValue>& inputs, const ProfileOptions& options,
                const std::function<void()>& check_interrupt);

}  // namespace rockmate

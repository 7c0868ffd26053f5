// Long work in threads, while the caller's thread stays free to tell progress and to see whether to stop.
#pragma once

#include <functional>

namespace rockmate {

// Runs `work` in a thread of its own and calls `watch` from the caller's thread some twenty times a second until it has
// ended. Throws what `work` throws; when `watch` throws, once `work` has ended: watch asks it to end first.
void run_watched(const std::function<void()>& work, const std::function<void()>& watch);

// Calls task(i) for i in [0, count) on so many threads, 0 for all cores. Throws what a task throws.
void run_parallel(int count, int threads, const std::function<void(int)>& task);

// The number of threads meant by a setting in which 0 stands for all cores.
int num_threads(int wanted);

}  // namespace rockmate

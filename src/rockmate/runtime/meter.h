// The allocation meter: every allocation and free that PyTorch's allocators report, on this thread and on the threads to which
// PyTorch hands this thread's state (the autograd engine's device threads).
//
// PyTorch reports to one object, the thread's profiler state. A meter is such a state whose profiler is disabled, so code that
// asks for a profiler (Dynamo does, while it compiles) finds none. Meters nest: the inner one passes everything on.
//
//   meter.start();   x = empty(1 KiB);  y = empty(2 KiB);  free(x);  z = empty(1 KiB);   meter.stop();
//   current_bytes    1024               3072               2048      3072
//   peak_bytes 3072; without the storage of y (peak_excluding) 1024
//
// Bytes are relative to the start. Memory that was alive before counts negative when it is freed, on accelerators always and
// on the CPU for the storages given to add_known(): the CPU allocator knows no sizes of what it gave out before.
// Not seen: memory that intra-op threads of a parallel region allocate, and memory that does not come from an allocator of
// PyTorch (NumPy, memory maps, oneDNN's scratchpads).
#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace rockmate {

struct AllocationEvent {
  std::uintptr_t pointer = 0;
  std::int64_t bytes = 0;  // negative for a free
};

class Meter final : public torch::profiler::impl::ProfilerStateBase, public std::enable_shared_from_this<Meter> {
 public:
  // Counts one device only when given one (any index when it has none), else all devices together.
  explicit Meter(std::optional<c10::Device> device = std::nullopt, bool record_events = true);

  // Installs the meter on this thread. Throws std::runtime_error when the meter runs already, or a torch profiler runs here;
  // that one may be hidden only while record functions are off, since their callbacks take what they find for their profiler.
  void start(bool hide_profiler = false);
  // Throws std::runtime_error when something that was started later is still installed on this thread.
  void stop();
  bool running() const { return running_; }

  // Memory that is alive now and whose free has to be seen.
  void add_known(std::uintptr_t pointer, std::int64_t bytes);

  // While paused, allocations are left out; frees of memory that was counted still count.
  void set_paused(bool paused);

  std::int64_t current_bytes() const;
  std::int64_t peak_bytes() const;
  // The most bytes since the last call, and starts anew from the bytes held now.
  std::int64_t take_window_peak();
  std::vector<AllocationEvent> events() const;

  // Bytes after each event as if the allocations at these addresses that are still alive had never happened; entry 0 is the
  // start.
  std::vector<std::int64_t> trace_excluding(const std::vector<std::uintptr_t>& pointers) const;

  // The innermost meter on this thread, nullptr for none.
  static Meter* innermost();
  Meter* outer() const { return outer_.get(); }

  // c10::MemoryReportingInfoBase
  void reportMemoryUsage(void* pointer, std::int64_t bytes, std::size_t total_allocated, std::size_t total_reserved,
                         c10::Device device) override;
  bool memoryProfilingEnabled() const override { return true; }
  torch::profiler::impl::ActiveProfilerType profilerType() override { return torch::profiler::impl::ActiveProfilerType::NONE; }

 private:
  void count(std::uintptr_t pointer, std::int64_t bytes, c10::Device device);

  const std::optional<c10::Device> device_;
  const bool record_events_;
  std::shared_ptr<Meter> outer_;
  std::shared_ptr<c10::ThreadLocalDebugInfo> previous_info_;
  std::shared_ptr<c10::ThreadLocalDebugInfo> own_info_;

  mutable std::mutex mutex_;  // guards everything below: device threads report too
  bool running_ = false;
  bool paused_ = false;
  std::int64_t current_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
  std::int64_t window_peak_bytes_ = 0;
  std::unordered_map<std::uintptr_t, std::int64_t> alive_;  // counted or known
  std::vector<AllocationEvent> events_;
};

}  // namespace rockmate

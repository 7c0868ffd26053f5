#include "rockmate/runtime/meter.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

namespace rockmate {
namespace {

using c10::DebugInfoKind;
using c10::ThreadLocalDebugInfo;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

}  // namespace

Meter::Meter(std::optional<c10::Device> device, bool record_events)
    : ProfilerStateBase(ProfilerConfig(ProfilerState::Disabled)), device_(device), record_events_(record_events) {}

Meter* Meter::innermost() { return dynamic_cast<Meter*>(ThreadLocalDebugInfo::get(DebugInfoKind::PROFILER_STATE)); }

void Meter::start(bool hide_profiler) {
  if (running_) throw std::runtime_error("[meter] it runs already; make another one to nest");
  Meter* outer = innermost();
  if (!outer && !hide_profiler && ThreadLocalDebugInfo::get(DebugInfoKind::PROFILER_STATE)) {
    throw std::runtime_error("[meter] a torch profiler runs on this thread; stop it first, both listen at the same place");
  }
  outer_ = outer ? outer->shared_from_this() : nullptr;
  previous_info_ = ThreadLocalDebugInfo::current();
  ThreadLocalDebugInfo::_push(DebugInfoKind::PROFILER_STATE, shared_from_this());
  own_info_ = ThreadLocalDebugInfo::current();
  const std::lock_guard<std::mutex> lock(mutex_);
  running_ = true;
}

void Meter::stop() {
  if (!running_) return;
  if (ThreadLocalDebugInfo::current() != own_info_) {
    throw std::runtime_error(
        "[meter] a meter or profiler that was started later, or on another thread, is still running; stop "
        "that first");
  }
  ThreadLocalDebugInfo::_forceCurrentDebugInfo(previous_info_);
  previous_info_.reset();
  own_info_.reset();
  outer_.reset();
  const std::lock_guard<std::mutex> lock(mutex_);
  running_ = false;
}

void Meter::add_known(std::uintptr_t pointer, std::int64_t bytes) {
  if (pointer == 0 || bytes <= 0) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!alive_.emplace(pointer, bytes).second) return;
  }
  // The CPU allocator reports a free only of what it was told about while somebody listened. Outer meters must not take this
  // for an allocation, so all of them look away for a moment.
  std::vector<Meter*> listening;
  for (Meter* meter = this; meter; meter = meter->outer_.get()) {
    const std::lock_guard<std::mutex> lock(meter->mutex_);
    if (!meter->paused_) listening.push_back(meter);
    meter->paused_ = true;
  }
  c10::profiledCPUMemoryReporter().New(reinterpret_cast<void*>(pointer), static_cast<std::size_t>(bytes));
  for (Meter* meter : listening) meter->set_paused(false);
}

void Meter::set_paused(bool paused) {
  const std::lock_guard<std::mutex> lock(mutex_);
  paused_ = paused;
}

void Meter::reportMemoryUsage(void* pointer, std::int64_t bytes, std::size_t total_allocated, std::size_t total_reserved,
                              c10::Device device) {
  count(reinterpret_cast<std::uintptr_t>(pointer), bytes, device);
  if (outer_) outer_->reportMemoryUsage(pointer, bytes, total_allocated, total_reserved, device);
}

void Meter::count(std::uintptr_t pointer, std::int64_t bytes, c10::Device device) {
  if (device_ && (device_->type() != device.type() || (device_->has_index() && device_->index() != device.index()))) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!running_) return;
  if (bytes >= 0) {
    if (paused_) return;
    alive_[pointer] = bytes;
  } else {
    const auto found = alive_.find(pointer);
    if (found != alive_.end()) {
      bytes = -found->second;
      alive_.erase(found);
    } else if (paused_ || device.is_cpu()) {
      return;  // the size that the CPU allocator remembers may be that of an earlier tenant of the address
    }
  }
  current_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, current_bytes_);
  window_peak_bytes_ = std::max(window_peak_bytes_, current_bytes_);
  if (record_events_) events_.push_back({pointer, bytes});
}

std::int64_t Meter::current_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return current_bytes_;
}

std::int64_t Meter::peak_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peak_bytes_;
}

std::int64_t Meter::take_window_peak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(window_peak_bytes_, current_bytes_);
}

std::vector<AllocationEvent> Meter::events() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return events_;
}

std::vector<std::int64_t> Meter::trace_excluding(const std::vector<std::uintptr_t>& pointers) const {
  const std::vector<AllocationEvent> events = this->events();
  std::unordered_set<std::uintptr_t> remaining(pointers.begin(), pointers.end());
  std::vector<bool> excluded(events.size(), false);
  for (std::size_t i = events.size(); i-- > 0;) {
    // Seen from the end, the first event at an address is the allocation that survived, or a free: then there is none.
    if (remaining.erase(events[i].pointer)) excluded[i] = events[i].bytes > 0;
  }
  std::vector<std::int64_t> trace{0};
  trace.reserve(events.size() + 1);
  for (std::size_t i = 0; i < events.size(); ++i) trace.push_back(trace.back() + (excluded[i] ? 0 : events[i].bytes));
  return trace;
}

}  // namespace rockmate

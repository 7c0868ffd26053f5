#include "rockmate/runtime/profile.h"

#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace rockmate {
namespace {

void synchronize(c10::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeDevice(device.has_index() ? device.index() : guard.getDevice().index());
}

c10::Device device_of(const std::vector<c10::IValue>& values) {
  for (const c10::IValue& value : values) {
    if (value.isTensor() && value.toTensor().defined() && !value.toTensor().is_cpu()) return value.toTensor().device();
  }
  return c10::Device(c10::DeviceType::CPU);
}

void for_each_tensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit) {
  if (value.isTensor() && value.toTensor().defined() && value.toTensor().has_storage()) {
    visit(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) for_each_tensor(element, visit);
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) for_each_tensor(element, visit);
  }
}

std::uintptr_t storage_of(const at::Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.storage().unsafeGetStorageImpl());
}

std::vector<OutputProfile> describe(const std::vector<c10::IValue>& outputs, const std::vector<c10::IValue>& inputs) {
  std::unordered_set<std::uintptr_t> input_storages;
  for (const c10::IValue& input : inputs) {
    for_each_tensor(input, [&](const at::Tensor& tensor) { input_storages.insert(storage_of(tensor)); });
  }
  std::vector<OutputProfile> profiles;
  for (const c10::IValue& output : outputs) {
    for_each_tensor(output, [&](const at::Tensor& tensor) {
      profiles.push_back({storage_of(tensor), static_cast<std::int64_t>(tensor.storage().nbytes()), tensor.strides().vec(),
                          input_storages.contains(storage_of(tensor))});
    });
  }
  return profiles;
}

// Which of the events are allocations that are alive at the end as the storage of an output.
std::vector<ProfileEvent> label(const std::vector<AllocationEvent>& events, const std::vector<c10::IValue>& outputs) {
  std::unordered_map<std::uintptr_t, int> output_at;
  int index = 0;
  for (const c10::IValue& output : outputs) {
    for_each_tensor(output, [&](const at::Tensor& tensor) {
      output_at.emplace(reinterpret_cast<std::uintptr_t>(tensor.storage().data()), index++);
    });
  }
  std::vector<ProfileEvent> labelled(events.size());
  for (std::size_t i = events.size(); i-- > 0;) {  // the last allocation at an address is the one that is still there
    labelled[i].bytes = events[i].bytes;
    const auto found = output_at.find(events[i].pointer);
    if (events[i].bytes > 0 && found != output_at.end()) {
      labelled[i].output = found->second;
      output_at.erase(found);
    }
  }
  return labelled;
}

}  // namespace

Profile profile(const Program& program, const std::vector<c10::IValue>& inputs, const ProfileOptions& options,
                const std::function<void()>& check_interrupt) {
  const c10::Device device = device_of(inputs);
  const at::RecordFunctionGuard unrecorded(false);  // a profiler of the user's is not told what is run to price ops
  auto run = [&] {
    std::vector<c10::IValue> taken = inputs;
    return program.run(taken);
  };
  Profile result;
  for (int i = 0; i < 2; ++i) {
    run();
    check_interrupt();
  }
  {
    const auto meter = std::make_shared<Meter>(device, /*record_events=*/true);
    meter->start(/*hide_profiler=*/true);
    struct Stop {
      Meter& meter;
      ~Stop() { meter.stop(); }
    } const stop{*meter};
    const std::vector<c10::IValue> outputs = run();
    result.peak_bytes = meter->peak_bytes();
    result.kept_bytes = meter->current_bytes();
    result.outputs = describe(outputs, inputs);
    result.events = label(meter->events(), outputs);
  }
  synchronize(device);
  using Clock = std::chrono::steady_clock;
  std::vector<double> times_us;
  double spent_us = 0;
  while (static_cast<int>(times_us.size()) < std::max(1, options.max_runs) &&
         (times_us.empty() || spent_us < options.min_time_us)) {
    std::vector<c10::IValue> taken = inputs;
    const Clock::time_point begin = Clock::now();
    std::vector<c10::IValue> outputs = program.run(taken);
    synchronize(device);
    const double time_us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    outputs.clear();
    times_us.push_back(time_us);
    spent_us += time_us;
    check_interrupt();
  }
  const auto middle = times_us.begin() + static_cast<std::ptrdiff_t>(times_us.size() / 2);
  std::nth_element(times_us.begin(), middle, times_us.end());
  result.time_us = *middle;
  result.num_runs = static_cast<int>(times_us.size());
  return result;
}

}  // namespace rockmate

#include "rockmate/runtime/rng.h"

#include <ATen/Context.h>

#include <mutex>

namespace rockmate {
namespace {

at::Generator default_generator(c10::Device device) {
  if (device.type() != c10::DeviceType::CPU && !device.has_index()) {
    // Index -1 means the current device, to every accelerator.
    return at::globalContext().defaultGenerator(c10::Device(device.type(), -1));
  }
  return at::globalContext().defaultGenerator(device);
}

}  // namespace

at::Tensor generator_state(c10::Device device) {
  at::Generator generator = default_generator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

ReplayGuard::ReplayGuard(c10::Device device, const at::Tensor& state) : generator_(default_generator(device)) {
  const std::lock_guard<std::mutex> lock(generator_.mutex());
  own_state_ = generator_.get_state();
  generator_.set_state(state);
}

ReplayGuard::~ReplayGuard() {
  const std::lock_guard<std::mutex> lock(generator_.mutex());
  generator_.set_state(own_state_);
}

}  // namespace rockmate

// Saving and replaying the state of a device's default generator around one call.
//
// A random op that the backward pass computes again has to draw what it drew in the forward pass, and the stream that the user
// sees must not notice. As in PyTorch's run_and_save_rng_state and run_with_rng_state the state is a uint8 tensor in host
// memory, 5056 bytes for the CPU and 16 for CUDA.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace rockmate {

at::Tensor generator_state(c10::Device device);

// While it lives the device's generator continues from `state`; then the stream's own state comes back.
class ReplayGuard {
 public:
  ReplayGuard(c10::Device device, const at::Tensor& state);
  ~ReplayGuard();
  ReplayGuard(const ReplayGuard&) = delete;
  ReplayGuard& operator=(const ReplayGuard&) = delete;

 private:
  at::Generator generator_;
  at::Tensor own_state_;
};

}  // namespace rockmate

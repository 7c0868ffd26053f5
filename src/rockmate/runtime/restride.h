// Bringing a value back to the strides that the trace predicted.
//
// Kernels may return other strides than their meta function promised (a channels-last convolution, a matmul that keeps a
// transposed layout); a later view, or an op that reads strides, then fails or means something else. Strides of dimensions of
// size 1 say nothing about the layout and are not compared.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace rockmate {

struct Layout {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};

// True when the sizes are those traced and a stride that matters is not.
bool differs(const at::Tensor& tensor, const Layout& traced);

// A copy with the traced strides.
at::Tensor restrided(const at::Tensor& tensor, const Layout& traced);

}  // namespace rockmate

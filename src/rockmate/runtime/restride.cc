#include "rockmate/runtime/restride.h"

#include <ATen/ops/empty_strided.h>

#include <algorithm>

namespace rockmate {

bool differs(const at::Tensor& tensor, const Layout& traced) {
  const at::IntArrayRef strides = tensor.strides();
  const std::size_t dims = traced.strides.size();
  if (strides.size() == dims && std::equal(strides.begin(), strides.end(), traced.strides.begin())) return false;
  const at::IntArrayRef sizes = tensor.sizes();
  if (sizes.size() != dims || !std::equal(sizes.begin(), sizes.end(), traced.sizes.begin())) return false;
  bool different = false;
  for (std::size_t dim = 0; dim < dims; ++dim) {
    if (sizes[dim] == 0) return false;
    different |= sizes[dim] != 1 && strides[dim] != traced.strides[dim];
  }
  return different;
}

at::Tensor restrided(const at::Tensor& tensor, const Layout& traced) {
  at::Tensor copy = at::empty_strided(traced.sizes, traced.strides, tensor.options());
  copy.copy_(tensor);
  return copy;
}

}  // namespace rockmate

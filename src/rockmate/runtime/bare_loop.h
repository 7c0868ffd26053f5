// The yardstick for the executor: the same op called in a plain C++ loop.
#pragma once

#include <ATen/core/Tensor.h>

namespace rockmate {

// x = x + y, `count` times, by the typed call that PyTorch's own C++ code makes, and by the boxed call that programs make.
at::Tensor add_chain_unboxed(at::Tensor x, const at::Tensor& y, int count);
at::Tensor add_chain_boxed(at::Tensor x, const at::Tensor& y, int count);

}  // namespace rockmate

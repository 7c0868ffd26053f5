#include "rockmate/runtime/bare_loop.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/add.h>

namespace rockmate {

at::Tensor add_chain_unboxed(at::Tensor x, const at::Tensor& y, int count) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (int i = 0; i < count; ++i) x = at::add(x, y, 1);
  return x;
}

at::Tensor add_chain_boxed(at::Tensor x, const at::Tensor& y, int count) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::OperatorHandle add = c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
  torch::jit::Stack stack;
  for (int i = 0; i < count; ++i) {
    stack.emplace_back(std::move(x));
    stack.emplace_back(y);
    stack.emplace_back(1);
    add.callBoxed(stack);
    x = std::move(stack.back()).toTensor();
    stack.clear();
  }
  return x;
}

}  // namespace rockmate

#include "rockmate/runtime/tied_views.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

namespace rockmate {

namespace impl = torch::autograd::impl;

void count_writes_together(const at::Tensor& tensor, const at::Tensor& other) {
  impl::set_version_counter(tensor, impl::version_counter(other));
}

at::Tensor tied_view(const at::Tensor& base, const at::Tensor& output, bool base_holds_all) {
  const c10::AutoGradMode with_grad(true);
  const at::Tensor view = base.as_strided(output.sizes(), output.strides(), output.storage_offset());
  impl::set_gradient_edge(view, impl::gradient_edge(output.alias()));  // autograd wants the first output of a node there
  if (!base_holds_all) impl::get_view_autograd_meta(view)->set_creation_meta(torch::autograd::CreationMeta::MULTI_OUTPUT_NODE);
  return view;
}

}  // namespace rockmate

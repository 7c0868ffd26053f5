// Outputs of one step that share memory.
#pragma once

#include <ATen/core/Tensor.h>

namespace rockmate {

// Lets two tensors that share memory count together how often it was written into, as a tensor and its view do: a step runs
// below the code that sees to that. Then a value saved for the backward pass is known to have been changed by way of an output.
void count_writes_together(const at::Tensor& tensor, const at::Tensor& other);

// `output` as a view of `base`, whose memory it shares, with the gradient that it has already. That holds until something is
// written into either: then autograd makes the gradient anew by way of the base, as it does for all views. Where the base does
// not hold all of the output's elements that way is closed, and writing raises autograd's error for such views.
at::Tensor tied_view(const at::Tensor& base, const at::Tensor& output, bool base_holds_all);

}  // namespace rockmate

// Depthwise convolutions: every channel with a kernel of its own.
#pragma once

#include <memory>

#include "target/provider.h"

namespace millrace::cpu {

/// Takes conv2d and both its gradients where groups, channels and results are equally many, in f32 and bf16, with kernels of
/// up to 128 elements and any stride, dilation and padding. Sums are in f32.
std::unique_ptr<Provider> make_depthwise_provider();

}  // namespace millrace::cpu

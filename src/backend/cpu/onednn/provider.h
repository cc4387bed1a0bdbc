// oneDNN as a provider of the cpu back end: convolutions and matrix products.
#pragma once

#include <memory>

#include "target/provider.h"

namespace millrace {

/// Takes matmul, conv2d, conv2d_input_grad and conv2d_weight_grad in f32 and bf16. Convolutions want activations
/// channels-last, weights stay row-major; constant weights are packed once, when the kernel is built. The work is
/// split into chunks that depend on the problem only and that no sum crosses (or whose partial sums are added in a
/// fixed order), so results are the same for any number of threads.
std::unique_ptr<Provider> make_onednn_provider();

}  // namespace millrace

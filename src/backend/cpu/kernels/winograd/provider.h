// Convolutions by Winograd's minimal filtering: F(4×4, 3×3), a quarter of the multiplications of the direct way.
#pragma once

#include <memory>

#include "target/provider.h"

namespace millrace::cpu {

/// Takes conv2d, conv2d_input_grad and conv2d_weight_grad with 3×3 windows, stride 1, dilation 1 and one group, in f32, on
/// CPUs with AVX-512. Results differ from exact ones by at most about 1e-5 of the largest (2e-7 the direct way): the
/// tests hold every kernel to 5e-5.
std::unique_ptr<Provider> make_winograd_provider();

}  // namespace millrace::cpu

// Convolutions and their gradients by oneDNN.
#pragma once

#include <memory>

#include "target/provider.h"

namespace millrace::onednn {

/// conv2d and conv2d_input_grad: weights times something that has images.
std::unique_ptr<Kernel> build_convolution(const KernelRequest& request);
/// conv2d_weight_grad.
std::unique_ptr<Kernel> build_weight_gradient(const KernelRequest& request);

}  // namespace millrace::onednn

// Packed matrix products of our own: matmul, and convolutions with their gradients as products.
#pragma once

#include <memory>

#include "target/provider.h"

namespace millrace::cpu {

std::unique_ptr<Provider> make_gemm_provider();

}  // namespace millrace::cpu

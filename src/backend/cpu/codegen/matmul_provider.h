// Small f32 matrix products, compiled for their very sizes.
#pragma once

#include <memory>

#include "target/provider.h"

namespace millrace {

std::unique_ptr<Provider> make_small_matmul_provider();

}  // namespace millrace

// Matrix products by oneDNN.
#pragma once

#include <memory>

#include "target/provider.h"

namespace millrace::onednn {

std::unique_ptr<Kernel> build_matmul(const KernelRequest& request);

}  // namespace millrace::onednn

// Layer normalisation and its gradient in one pass over memory, as a provider of the cpu back end.
#pragma once

#include <memory>

#include "backend/cpu/kernels/norm_math.h"
#include "target/provider.h"

namespace millrace::cpu {

/// The kernel of a node with given arithmetic, for tests.
std::unique_ptr<Kernel> make_layer_norm(const KernelRequest& request, const NormMath& math);

}  // namespace millrace::cpu

// Layer normalisation and its gradient in one pass over memory, as a provider of the cpu back end.
#pragma once

#include <memory>

#include "backend/cpu/kernels/norm_math.h"
#include "target/provider.h"

namespace millrace::cpu {

/// Takes layer_norm and layer_norm_grad in f32. A row is read from memory once: its sums are taken while it is in the
/// cache. The gradients of weight and bias are added up by chunks of rows, which are fixed by the problem, and these in
/// order. Works in place.
std::unique_ptr<Provider> make_layer_norm_provider();

/// The kernel of a node with given arithmetic, for tests.
std::unique_ptr<Kernel> make_layer_norm(const KernelRequest& request, const NormMath& math);

}  // namespace millrace::cpu

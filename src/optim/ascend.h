// Gradients beside the parameters: what sharpness-aware minimisation takes.
#pragma once

#include <vector>

#include "optim/accumulate.h"

namespace millrace::optim {

/// The step with the gradients at parameters + radius · gradient / norm of all gradients; means and buffers
/// stay those at the parameters. `trainable`: the inputs that the gradients are of, in their order.
/// InputError where these are stored in 16 bits, which would round such a little way off.
Differentiated ascended(const Differentiated& step, double radius, const std::vector<int>& trainable);

}  // namespace millrace::optim

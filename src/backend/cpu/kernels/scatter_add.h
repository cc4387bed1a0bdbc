// scatter_add on f32, as a provider of the cpu back end.
#pragma once

#include <memory>

#include "target/provider.h"

namespace millrace::cpu {

/// Every chunk owns a range of the base and adds the updates that fall into it in their order, so the result does not
/// depend on the number of threads. Works in place on the base.
std::unique_ptr<Provider> make_scatter_add_provider();

}  // namespace millrace::cpu

// The reference back end as a provider: takes every primitive, in row-major layout.
#pragma once

#include <memory>

#include "target/provider.h"

namespace millrace::ref {

std::unique_ptr<Provider> make_provider();

}  // namespace millrace::ref

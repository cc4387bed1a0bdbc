// resize with the loader's loops.
#pragma once

#include <memory>

#include "target/provider.h"

namespace millrace::cpu {

std::unique_ptr<Provider> make_resize_provider();

}  // namespace millrace::cpu

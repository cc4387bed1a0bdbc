// Loop nests compiled by LLVM: element-wise, movement and generator operators, reductions, and fused groups
// of them.
#pragma once

#include <memory>

#include "target/provider.h"

namespace millrace {

std::unique_ptr<Provider> make_codegen_provider();

}  // namespace millrace

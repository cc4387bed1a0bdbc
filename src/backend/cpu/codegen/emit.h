// LLVM IR of a loop nest: explicit vectors, no optimisation passes needed.
#pragma once

#include <string>

#include "backend/cpu/codegen/nest.h"

namespace llvm {
class Module;
}

namespace millrace::codegen {

/// Adds `void name(void* const* buffers, int64_t begin, int64_t end)` to a module: the outer iterations
/// [begin, end), begin < end.
void emit(const Nest& nest, llvm::Module& module, const std::string& name);

}  // namespace millrace::codegen

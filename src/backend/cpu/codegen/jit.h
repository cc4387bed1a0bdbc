// Machine code of nests: compiled by LLVM, kept in memory and on disk by content.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace llvm {
class Module;
}

namespace millrace::codegen {

/// Runs the outer iterations [begin, end) of a nest, begin < end. `length`: what the slowest loop runs over,
/// where the code does for any.
using NestFunction = void (*)(void* const* buffers, int64_t begin, int64_t end, int64_t length);

/// Linked code; its memory is freed with the last owner.
struct Code {
  NestFunction function = nullptr;
};

/// Adds a NestFunction to a module.
using EmitFunction = std::function<void(llvm::Module& module, const std::string& name)>;

/// The code that `text` identifies, from memory, from disk, or compiled now. Any number of threads may call
/// it; they compile at the same time. The disk cache is $MILLRACE_CACHE/kernels, else
/// $XDG_CACHE_HOME/millrace/kernels, else
/// ~/.cache/millrace/kernels; files that cannot be read, are damaged or cannot be written are passed over.
std::shared_ptr<const Code> compile(const std::string& text, const EmitFunction& emit_code);

/// A digest of the sources that make code, and of the headers whose enumerations stand as numbers in the text
/// that code is known by: of the same text another generator would have made something else, so nobody has to
/// remember a number when this one changes.
std::string_view code_sources();

/// Where code came from since the process began.
struct CodeCounts {
  int64_t compiled = 0, from_disk = 0, from_memory = 0;
};
CodeCounts code_counts();

/// Forgets code that no kernel uses; the disk keeps it.
void forget_unused_code();

}  // namespace millrace::codegen

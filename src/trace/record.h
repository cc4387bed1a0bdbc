// Recording of compiled functions: what a host read does while one is being recorded.
#pragma once

#include <source_location>

#include "trace/node.h"

namespace millrace::trace {

/// What answers host reads while a function is recorded on this thread.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Makes `tensor` (an operation or a value) a value and notes the read. `as_bool`: only zero or not matters
  /// to the function; `whole`: the array itself was asked for.
  enum class Kind { truth, number, array };
  virtual void read(const Tensor& tensor, Kind kind, const std::source_location& where) = 0;
};

/// The reader of this thread, or null outside recordings.
Reader*& current_reader();

/// Computes tensors outside of recordings.
void compute(std::span<const Tensor> tensors);

}  // namespace millrace::trace

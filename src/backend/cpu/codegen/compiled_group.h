// A group of operators as code: what all kernels of equal groups share.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/codegen/nest.h"

namespace millrace::codegen {

/// One nest, cut into chunks of outer iterations.
class CompiledNest {
 public:
  explicit CompiledNest(const Nest& nest);
  int64_t chunks() const { return (outer_ + per_chunk_ - 1) / per_chunk_; }
  /// About how long one thread takes.
  double nanoseconds() const;
  void run_chunk(void* const* buffers, int64_t chunk) const {
    const int64_t begin = chunk * per_chunk_;
    run(buffers, begin, std::min(begin + per_chunk_, outer_));
  }
  void run(void* const* buffers, int64_t begin, int64_t end) const {
    code_->function(buffers, begin, end, length_);
  }

 private:
  std::shared_ptr<const Code> code_;
  int64_t outer_ = 1, per_chunk_ = 1;
  int64_t length_ = 1;  // of the slowest loop
  double work_ = 0;
};

struct CompiledGroup {
  static constexpr size_t most_buffers = 512;

  explicit CompiledGroup(const KernelRequest& request);

  size_t operands, results;
  std::vector<Array> constants;
  std::vector<int64_t> partial_offsets;
  int64_t scratch_bytes = 0;
  std::vector<CompiledNest> phases;
  std::vector<int> streamed;              // buffers that must be aligned
  std::optional<Nest> nest;               // the first phase's, where other code for it may be wanted
  std::set<std::pair<int, int>> aliases;  // operands and results that may be one memory
  NestRows rows;
  std::string description;

  /// The first phase for buffers that are not aligned: foreign memory may stand anywhere. Code without
  /// streaming stores, compiled when it is first needed.
  const CompiledNest& unaligned() const;

 private:
  mutable std::once_flag unaligned_once_;
  mutable std::optional<CompiledNest> unaligned_;
};

/// For a node that lowering takes. Whoever asks for an equal one while somebody has it gets the same: models
/// consist of equal layers, and of a new size most of a model is what it was.
std::shared_ptr<const CompiledGroup> compiled_group(const KernelRequest& request);

Nest without_streams(Nest nest);

}  // namespace millrace::codegen

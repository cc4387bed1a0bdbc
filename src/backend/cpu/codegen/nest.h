// A loop nest: what one fused group computes over its iteration space, and how the loops run.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/graph.h>
#include <millrace/operator.h>

#include "backend/cpu/codegen/dag.h"
#include "target/provider.h"

namespace llvm {
class Module;
}

namespace millrace::codegen {

/// A result element written at every point of the iteration space.
struct Store {
  int buffer;
  DType memory;
  int offset, value;  // expressions
  /// Whole vectors go past the caches, to addresses that are multiples of `stream_align` bytes when the
  /// buffer is; 0: no.
  int stream_align = 0;
};

/// A result that combines a value over the reduced dimensions.
struct Reduce {
  Reduction kind = Reduction::sum;
  int value = -1;     // expression
  int position = -1;  // argmax, argmin: the position of `value` (i64 expression)
  int offset = 0;     // expression of the kept dimensions
  int buffer = 0;     // of the result (positions for argmax, argmin)
  DType memory = {};
  int value_buffer = -1;    // argmax, argmin in parts: where the extremes go
  int64_t part_stride = 0;  // in parts: elements from one part's results to the next
  int64_t divisor = 1;      // mean: how many elements
};

/// Dimension 0 is the outermost loop; the last one is spread over vector lanes.
struct Nest {
  Dag dag{{}};
  std::vector<bool> reduced;
  std::vector<Store> stores;
  std::vector<Reduce> reduces;

  // Set by schedule().
  int lanes = 16;
  int64_t group = 0;      // elements of the lane dimension in one outer iteration (lane dimension kept)
  int fastest = -1;       // a kept dimension that runs inside of the lane groups (transposes), −1 none
  int tile = 0;           // elements of `fastest` that one block of lanes computes at once, 0 for one by one
  int split = -1;         // reduced dimension that is cut into parts, −1 none
  int64_t part_size = 0;  // elements of it in one part
  int64_t parts = 1;
  double cost = 1;  // rough work of one element, in simple vector operations
  /// The code does for any length of dimension 0, which sizes() only bounds; where that is spread over lanes,
  /// for any that leaves as many elements to the last vector, with `any_tail` whatever it leaves.
  bool any_length = false, any_tail = false;
  /// Buffer → how many bytes beyond what is read of it are fetched into the cache meanwhile.
  std::map<int, int64_t> ahead;

  const std::vector<int64_t>& sizes() const { return dag.sizes(); }
  int rank() const { return static_cast<int>(dag.sizes().size()); }
  int lane_dim() const { return rank() - 1; }
  bool lane_reduced() const { return reduced.back(); }
  bool has_reduced() const;
  /// Iterations of the outer, parallel loop, and elements computed in one of them: idle lanes cost what busy
  /// ones do.
  int64_t outer_count() const;
  double outer_elements() const;
  /// The dimensions of the outer loop, slowest first: a dimension, kLaneGroup or kPart.
  static constexpr int kLaneGroup = -1, kPart = -2;
  std::vector<int> outer_dims() const;
  int64_t outer_size(int outer_dim) const;
  /// All expressions that the roots use.
  std::vector<int*> roots();
  /// Replaces the iteration space; `map` as in Dag::copy.
  void rebuild(std::vector<int64_t> sizes, std::vector<bool> is_reduced,
               const std::function<int(Dag&, const Linear&)>& map);
  /// The nest to compile for this one: where it can, the same as for other lengths of dimension 0.
  Nest for_any_length() const;
  /// Canonical text: equal texts give equal machine code.
  std::string text() const;
};

/// What a lowered group needs at run time.
struct Group {
  Nest nest;
  std::vector<Array> constants;  // buffers after operands and results
};

/// Why lowering does not take a node; nullopt when it does.
std::optional<std::string> why_not_lower(const Node& node);

/// The iteration space of a node that lowering takes.
const Shape& space_of(const Graph& graph, const Node& node, int result = 0);

/// A node as a graph: a fused one's own body, or a graph of the node alone.
std::shared_ptr<const Graph> body_of(const Graph& graph, const Node& node);

/// Lowers a node (a `fused` body or a lone primitive). Buffers: operands, results, then constants. Dimensions
/// are the logical ones of the iteration space; schedule() orders them.
Group lower(const KernelRequest& request);

/// What combines the parts of a reduction.
struct Combination {
  Nest nest;
  std::vector<int64_t> partial_bytes;  // of each partial buffer
};

/// Orders, merges and cuts the loops. When the reduction is cut into parts (for parallelism), reduction
/// results go to partial buffers instead, numbered from `first_buffer`, and what combines them is returned.
std::optional<Combination> schedule(Nest& nest, int first_buffer);

/// How a scheduled nest runs on some rows of its results: the part of RowKernel that follows from it.
struct NestRows {
  int64_t most = 0;            // rows that results split into at most; 0: they do not
  std::vector<char> operands;  // whether a row takes no more of the operand than its row
  int64_t outer_count = 1;     // iterations of the outer loop
  int64_t group = 0;  // > 0: the only loop is the outer one, with so many elements of it an iteration

  /// See RowKernel::row_grain.
  int64_t grain(int64_t rows) const;
  /// The iterations of the outer loop that compute rows [begin, end).
  std::pair<int64_t, int64_t> outer(int64_t rows, int64_t begin, int64_t end) const;
};
NestRows rows_of(const Nest& nest, const KernelRequest& request);

/// Adds a NestFunction to a module: the outer iterations [begin, end) of a scheduled nest, begin < end;
/// `length` is that of dimension 0. Explicit vectors, no optimisation passes needed.
void emit(const Nest& nest, llvm::Module& module, const std::string& name);

}  // namespace millrace::codegen

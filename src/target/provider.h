// What a back end offers, besides what programs see of it (millrace/provider.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/provider.h>

#include "base/registry.h"
#include "base/thread_pool.h"

namespace millrace {

/// Tensors of so many bytes come from memory, whatever the caches are.
constexpr int64_t kFarBytes = 8 << 20;

/// How a chain uses one of its kernels.
struct RowUse {
  bool read_soon = false;  // the results are read while they are in the cache
  /// Of each operand, the bytes from rows to those of the chunk that this thread will probably run next,
  /// where it is worth fetching that from memory meanwhile; 0: it is not.
  std::vector<int64_t> ahead;
};

/// What a kernel offers that can also compute some rows of its results. A row is one of `rows` equal pieces
/// of a tensor as they follow each other in memory. The plan lets such kernels follow each other row by row,
/// while rows are in the cache.
class RowKernel {
 public:
  virtual ~RowKernel() = default;
  /// The most rows that all results split into; 0: they do not split.
  virtual int64_t most_rows() const = 0;
  /// Of how many rows a piece must be a multiple (the last one may be shorter); 0 when `rows` rows cannot be
  /// had.
  virtual int64_t row_grain(int64_t rows) const = 0;
  /// Whether a row of the results takes of this operand no more than the same row; else it may take all of
  /// it.
  virtual bool takes_row(int /*operand*/) const { return false; }
  /// Whether each piece reads all weights of a product again: of these a chain has one at most, as its pieces
  /// are small.
  virtual bool rereads_weights() const { return false; }
  /// Before run_rows is used.
  virtual void prepare_rows(const RowUse& /*use*/) {}
  /// Stages (of a ChunkedKernel) that come before any rows; they read only operands that are taken whole.
  virtual int first_stages() const { return 0; }
  /// Computes rows [begin, end) of `rows`. Pointers are those of whole tensors, though other rows may not be
  /// there.
  virtual void run_rows(int64_t rows, int64_t begin, int64_t end, void* const* operands, void* const* results,
                        void* scratch) = 0;
};

/// Each of the library's is a file below backend/cpu with MILLRACE_PROVIDER(name){…} in namespace
/// millrace::cpu.
template <typename Own>
std::unique_ptr<Provider> make_provider() {
  return std::make_unique<Own>();
}

/// One called "kernels", of these operators, the first of which its reason against others names. `why_not`
/// says why it does not take a node of theirs; null: it takes all.
std::unique_ptr<Provider> kernels_of(
    const std::vector<std::pair<std::string_view, OperatorProvider::Build>>& kernels,
    std::optional<std::string> (*why_not)(const Graph& graph, const Node& node) = nullptr);

#define MILLRACE_PROVIDER(NAME)              \
  extern const ProviderKind provider_##NAME; \
  const ProviderKind provider_##NAME

namespace cpu {
/// In order of preference; the reference comes behind them.
Registry<ProviderKind>& providers();
}  // namespace cpu

/// A back end: its providers in order of preference, ending in one that takes every node.
struct Target {
  std::string name;
  std::vector<std::unique_ptr<Provider>> providers;
  /// True when the target compiles `fused` nodes; the fuse pass runs only then.
  bool fuses = false;
  /// True when products, convolutions and attention run faster on bf16 than on f32 here; else the precision
  /// "bf16" computes in f32.
  bool fast_bf16 = false;

  /// The first provider that takes a node; null: none does.
  const Provider* taker(const Graph& graph, const Node& node) const;
};

}  // namespace millrace

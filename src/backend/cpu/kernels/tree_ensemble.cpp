#include <algorithm>
#include <cstring>
#include <limits>

#include <millrace/operator.h>

#include "base/format.h"
#include "ops/trees.h"
#include "target/provider.h"

namespace millrace::cpu {
namespace {

/// A node as the walk reads it, one load of 16 bytes. A leaf is its own child: no value is greater than its
/// threshold, which is no number, so that a row that is there stays there.
struct PackedNode {
  float threshold;
  int32_t column;
  int32_t left;
  int32_t step;  // to the node that a NaN goes to: 0 or 1 from `left`
};

constexpr int64_t kRowsAtOnce = 8;   // whose walks are interleaved: none waits for another's loads
constexpr int64_t kRowsAChunk = 64;  // which stay in the cache while the trees go by
constexpr int64_t kNodesAChunk = 1 << 13;

class TreeEnsemble : public ChunkedKernel {
 public:
  TreeEnsemble(int64_t rows, int64_t columns, int64_t nodes, int64_t trees, int64_t width)
      : rows_(rows),
        columns_(columns),
        nodes_(nodes),
        trees_(trees),
        width_(width),
        packs_(rows >= kRowsAtOnce && columns > 0) {}

  int stages() const override { return 2; }
  int64_t chunks(int stage) const override {
    if (stage == 0) return packs_ ? (nodes_ + kNodesAChunk - 1) / kNodesAChunk : 0;
    return (rows_ + kRowsAChunk - 1) / kRowsAChunk;
  }
  int64_t scratch_bytes() const override {
    return packs_ ? nodes_ * static_cast<int64_t>(sizeof(PackedNode)) : 0;
  }
  double nanoseconds() const override { return static_cast<double>(nodes_ + rows_ * trees_ * 10) + 100; }
  std::string description() const override {
    return packs_ ? fmt::format("{} rows at once", kRowsAtOnce) : "row by row";
  }

  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    ops::Trees trees;
    trees.column = static_cast<const int32_t*>(operands[1]);
    trees.threshold = static_cast<const float*>(operands[2]);
    trees.left = static_cast<const int32_t*>(operands[3]);
    trees.missing = static_cast<const uint8_t*>(operands[4]);
    trees.root = static_cast<const int32_t*>(operands[5]);
    trees.nodes = nodes_;
    trees.trees = trees_;
    trees.columns = columns_;
    auto* const packed = static_cast<PackedNode*>(scratch);
    if (stage == 0) return pack(trees, chunk, packed);
    const auto* const x = static_cast<const float*>(operands[0]);
    const auto* const base = static_cast<const float*>(operands[6]);
    auto* const out = static_cast<float*>(results[0]);
    const int64_t first = chunk * kRowsAChunk, end = std::min(rows_, first + kRowsAChunk);
    for (int64_t row = first; row < end; ++row) std::copy_n(base, width_, out + row * width_);
    int64_t row = first;
    if (packs_) {
      const int64_t together = (end - first) / kRowsAtOnce * kRowsAtOnce;
      // Most tables have a value everywhere, and then nobody need look for what is none.
      const float* const all = x + first * columns_;
      int none = 0;
      for (int64_t i = 0; i < together * columns_; ++i) none |= all[i] != all[i] ? 1 : 0;
      for (int64_t t = 0; t < trees_; ++t) {
        if (trees.root[t] < 0 || trees.root[t] >= nodes_) continue;
        for (int64_t at = first; at < first + together; at += kRowsAtOnce)
          if (none)
            walk<true>(packed, trees.threshold, trees.root[t], x + at * columns_,
                       out + at * width_ + t % width_);
          else
            walk<false>(packed, trees.threshold, trees.root[t], x + at * columns_,
                        out + at * width_ + t % width_);
      }
      row = first + together;
    }
    for (; row < end; ++row)
      for (int64_t t = 0; t < trees_; ++t)
        if (const int64_t leaf = trees.leaf(t, x + row * columns_); leaf >= 0)
          out[row * width_ + t % width_] += trees.threshold[leaf];
  }

 private:
  void pack(const ops::Trees& trees, int64_t chunk, PackedNode* packed) const {
    // As Trees::is_leaf() has it, without branches: which nodes are leaves is not to be foreseen.
    for (int64_t i = chunk * kNodesAChunk; i < std::min(nodes_, (chunk + 1) * kNodesAChunk); ++i) {
      const int32_t left = trees.left[i], column = trees.column[i];
      const bool leaf = (left <= i) | (left + int64_t{1} >= nodes_) | (column < 0) | (column >= columns_);
      packed[i].threshold = leaf ? std::numeric_limits<float>::quiet_NaN() : trees.threshold[i];
      packed[i].column = leaf ? 0 : column;
      packed[i].left = leaf ? static_cast<int32_t>(i) : left;
      packed[i].step = (trees.missing[i] == 0) & !leaf;
    }
  }

  /// Adds a tree's leaves for rows that follow each other. `Missing`: some value may be none.
  template <bool Missing>
  void walk(const PackedNode* nodes, const float* values, int32_t root, const float* x, float* out) const {
    int32_t at[kRowsAtOnce];
    const float* row[kRowsAtOnce];
    for (int64_t i = 0; i < kRowsAtOnce; ++i) {
      at[i] = root;
      row[i] = x + i * columns_;
    }
    const auto step = [&](int64_t i) {
      const PackedNode& node = nodes[at[i]];
      const float value = row[i][node.column];
      int32_t right = value >= node.threshold ? 1 : 0;
      if constexpr (Missing) right |= value != value ? node.step : 0;
      return node.left + right;
    };
    for (bool moved = true; moved;) {
      int32_t away = 0;
#pragma GCC unroll 8
      for (int64_t i = 0; i < kRowsAtOnce; ++i) at[i] = step(i);
#pragma GCC unroll 8
      for (int64_t i = 0; i < kRowsAtOnce; ++i) {
        const int32_t next = step(i);
        away |= next ^ at[i];
        at[i] = next;
      }
      moved = away != 0;
    }
    for (int64_t i = 0; i < kRowsAtOnce; ++i) out[i * width_] += values[at[i]];
  }

  int64_t rows_, columns_, nodes_, trees_, width_;
  bool packs_;
};

std::unique_ptr<Kernel> build_tree_ensemble(const KernelRequest& request) {
  const Shape& rows = request.operand_type(0).shape;
  return std::make_unique<TreeEnsemble>(rows[0].size(), rows[1].size(), request.operand_type(1).shape.count(),
                                        request.operand_type(5).shape.count(),
                                        request.operand_type(6).shape.count());
}

}  // namespace

MILLRACE_PROVIDER(tree_ensemble){
    .name = "tree-ensemble", .doc = "trees walked by many rows at once", .place = 106, .make = [] {
      return kernels_of({{"tree_ensemble", build_tree_ensemble}});
    }};

}  // namespace millrace::cpu

// The four attention operators seen as one problem with strides. Internal to the attention kernels.
#pragma once

#include <array>
#include <atomic>
#include <optional>

#include "backend/cpu/kernels/attention/math.h"
#include "target/provider.h"

namespace millrace::cpu {

/// Where a tensor [batch, heads, rows, columns] lies: a buffer of the node and strides in elements.
struct TensorView {
  int buffer = -1;  // an operand's or a result's number
  int64_t offset = 0;
  std::array<int64_t, 4> strides{};
  int64_t at(int64_t batch, int64_t head, int64_t row) const {
    return offset + batch * strides[0] + head * strides[1] + row * strides[2];
  }
};

/// A mask broadcast to [batch, heads, queries, keys]: strides are 0 where it is.
struct MaskView {
  TensorView view;
  DType dtype;
};

struct AttentionProblem {
  int64_t batch, heads, shared, queries, keys, width, value_width;
  bool causal;
  int64_t ahead;  // query i sees the keys up to i + ahead when causal
  float scale;
  DType dtype;
  TensorView q, k, v;
  std::optional<MaskView> mask;
  TensorView result, log_sum;  // forward: results; backward: log_sum is an operand
  TensorView gradient, inner;  // backward: operands
  TensorView dq, dk, dv;       // backward: results
  bool in_place = false;       // backward: dq, dk, dv lie as q, k, v do

  /// Keys that queries before `query_end` may see.
  int64_t keys_seen(int64_t query_end) const;
  /// The first query that sees a key from `key` on.
  int64_t first_query(int64_t key) const;
};

/// Of a node of one of the four operators.
AttentionProblem attention_problem(const KernelRequest& request);

/// The keys from one on that a tile takes, at most `keys`, and its queries, from `query` + skip on: where
/// later keys are hidden a tile is smaller, and the first lanes, whose queries see none of its keys, are left
/// out.
struct Tile {
  int64_t keys, skip, columns;  // columns: lanes after those left out
};
Tile tile_of(const AttentionMath& math, const AttentionProblem& p, int64_t key, int64_t keys, int64_t query,
             int64_t queries);

/// A tile [rows × columns] in f32: where it stands, or a copy of bf16 in `scratch`.
struct Rows {
  const float* data;
  int64_t row, column;  // strides
};
Rows rows_of(const void* buffer, const TensorView& view, DType dtype, int64_t batch, int64_t head,
             int64_t first, int64_t rows, int64_t columns, float* scratch);
/// A tile [rows × columns] of bf16 whose rows are whole pairs: where it stands, or a copy in `scratch`, which
/// has a zero behind an odd number of columns.
struct PairedRows {
  const uint16_t* data;
  int64_t row;  // stride
};
PairedRows paired_rows_of(const void* buffer, const TensorView& view, int64_t batch, int64_t head,
                          int64_t first, int64_t rows, int64_t columns, uint16_t* scratch);
/// Writes a dense tile [rows × columns] (row_stride apart) times `factor` to where the view says, in its
/// dtype.
void write_rows(void* buffer, const TensorView& view, DType dtype, int64_t batch, int64_t head, int64_t first,
                int64_t rows, int64_t columns, const float* from, int64_t row_stride, float factor);
/// The same of a tile [columns × rows] whose rows are attention_block apart; `scratch`: for rows × columns.
void write_columns(const AttentionMath& math, void* buffer, const TensorView& view, DType dtype,
                   int64_t batch, int64_t head, int64_t first, int64_t rows, int64_t columns,
                   const float* from, float factor, float* scratch);
/// The transposed copy to[column · attention_block + row]; columns of the tile beyond `rows` become 0.
void transposed(const AttentionMath& math, const Rows& from, int64_t rows, int64_t columns, float* to);

/// Adds the mask and hides later keys in a tile of scores [keys × queries], which begins behind the queries
/// that are left out.
void mask_scores(const AttentionMath& math, const AttentionProblem& p, void* const* operands, int64_t batch,
                 int64_t head, int64_t key, const Tile& tile, int64_t query, int64_t queries, float* scores,
                 float* bias);

/// Hands out aligned pieces of scratch memory; with no base it only counts.
class Scratch {
 public:
  explicit Scratch(void* base) : base_(static_cast<char*>(base)) {}
  template <class T>
  T* take(int64_t count) {
    char* const at = base_ ? base_ + used_ : nullptr;
    used_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return reinterpret_cast<T*>(at);
  }
  float* floats(int64_t count) { return take<float>(count); }
  int64_t used() const { return used_; }

 private:
  char* base_;
  int64_t used_ = 0;
};

/// The kernels of the two directions, with arithmetic in f32 chosen for this CPU, or as told (tests).
std::unique_ptr<Kernel> make_attention_forward(const AttentionProblem& problem, const AttentionMath& math);
std::unique_ptr<Kernel> make_attention_backward(const AttentionProblem& problem, const AttentionMath& math);
/// Those with products in bf16, for problems in bf16 where attention_bf16_math() is there.
std::unique_ptr<Kernel> make_attention_forward_bf16(const AttentionProblem& problem,
                                                    const AttentionBf16Math& math);
std::unique_ptr<Kernel> make_attention_backward_bf16(const AttentionProblem& problem,
                                                     const AttentionBf16Math& math);

}  // namespace millrace::cpu

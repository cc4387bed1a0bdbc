#include "backend/cpu/kernels/attention/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <millrace/operator.h>

#include "backend/cpu/kernels/vectors.h"
#include "ops/attention.h"

namespace millrace::cpu {

std::span<const AttentionMath* const> attention_maths() {
  static const auto maths = for_this_cpu(attention_math_avx512, attention_math_avx2, attention_math_baseline);
  return maths;
}

const AttentionBf16Math* attention_bf16_math() {
  return has_avx512_bf16() ? &attention_math_bf16_avx512() : nullptr;
}

namespace {

float widen(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

/// To the nearest bf16, ties to even.
uint16_t narrow(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// Strides of [batch, heads, rows, columns] for a tensor of that shape, or of [batch, rows, heads, columns],
/// or without columns.
TensorView view_of(int buffer, const Type& type, const Layout& layout, bool length_first,
                   int64_t first_head = 0) {
  const std::vector<int64_t> s = strides_of(type.shape, layout);
  TensorView view{
      buffer, 0, {s[0], s[length_first ? 2 : 1], s[length_first ? 1 : 2], s.size() > 3 ? s[3] : 0}};
  view.offset = first_head * view.strides[1];
  return view;
}

MaskView mask_of(int buffer, const Type& type) {
  const std::vector<int64_t> s = strides_of(type.shape, {});
  MaskView mask{{buffer, 0, {}}, type.dtype};
  for (int d = 1; d <= type.shape.rank(); ++d)
    if (const size_t axis = s.size() - static_cast<size_t>(d); type.shape[axis].size() != 1)
      mask.view.strides[4 - d] = s[axis];
  return mask;
}

float mask_value(const MaskView& mask, const void* data, int64_t at) {
  if (mask.dtype.is_bool())
    return static_cast<const uint8_t*>(data)[at] ? 0.0f : -std::numeric_limits<float>::infinity();
  return mask.dtype == f32 ? static_cast<const float*>(data)[at]
                           : widen(static_cast<const uint16_t*>(data)[at]);
}

}  // namespace

AttentionProblem attention_problem(const KernelRequest& request) {
  const Node& node = request.node;
  const auto [packed, backward] = *ops::attention_form(node);
  const auto operand = [&](int i, int64_t first_head = 0) {
    return view_of(i, request.operand_type(i), request.operand_layouts[i], packed, first_head);
  };
  const auto result = [&](int i, int64_t first_head = 0) {
    return view_of(i, node.types[i], request.result_layouts[i], packed, first_head);
  };
  AttentionProblem p{};
  const Shape& x = request.operand_type(0).shape;
  p.dtype = request.operand_type(0).dtype;
  p.batch = x[0].size();
  p.width = p.value_width = x[3].size();
  if (packed) {
    p.heads = node.attributes.integer("heads");
    p.shared = (x[2].size() - p.heads) / 2;
    p.queries = p.keys = x[1].size();
    p.q = operand(0);
    p.k = operand(0, p.heads);
    p.v = operand(0, p.heads + p.shared);
  } else {
    const Shape &k = request.operand_type(1).shape, &v = request.operand_type(2).shape;
    p.heads = x[1].size();
    p.shared = k[1].size();
    p.queries = x[2].size();
    p.keys = k[2].size();
    p.value_width = v[3].size();
    p.q = operand(0);
    p.k = operand(1);
    p.v = operand(2);
  }
  p.causal = node.attributes.flag("causal");
  p.ahead = p.keys - p.queries;
  p.scale = static_cast<float>(ops::attention_scale(node.attributes, p.width));
  int next = packed ? 1 : 3;
  if (backward) {
    p.gradient = operand(next);
    p.log_sum = operand(next + 1);
    p.inner = operand(next + 2);
    next += 3;
    p.dq = result(0);
    p.dk = packed ? result(0, p.heads) : result(1);
    p.dv = packed ? result(0, p.heads + p.shared) : result(2);
    p.in_place = p.dq.strides == p.q.strides && p.dk.strides == p.k.strides && p.dv.strides == p.v.strides;
  } else {
    p.result = result(0);
    p.log_sum = result(1);
  }
  if (static_cast<int>(node.operands.size()) > next) p.mask = mask_of(next, request.operand_type(next));
  return p;
}

int64_t AttentionProblem::keys_seen(int64_t query_end) const {
  return causal ? std::clamp<int64_t>(query_end + ahead, 0, keys) : keys;
}

int64_t AttentionProblem::first_query(int64_t key) const {
  return causal ? std::clamp<int64_t>(key - ahead, 0, queries) : 0;
}

Tile tile_of(const AttentionMath& math, const AttentionProblem& p, int64_t key, int64_t keys, int64_t query,
             int64_t queries) {
  const int64_t columns = (queries + math.lanes - 1) / math.lanes * math.lanes;
  if (!p.causal || key + keys - 1 <= query + p.ahead) return {keys, 0, columns};
  // The first query that sees the first key.
  const int64_t first = std::clamp<int64_t>(key - p.ahead - query, 0, queries);
  const int64_t skip = first == queries ? columns : first / math.lanes * math.lanes;
  return {std::min(keys, attention_block / 2), skip, columns - skip};
}

Rows rows_of(const void* buffer, const TensorView& view, DType dtype, int64_t batch, int64_t head,
             int64_t first, int64_t rows, int64_t columns, float* scratch) {
  const int64_t at = view.at(batch, head, first), row = view.strides[2], column = view.strides[3];
  if (dtype == f32) return {static_cast<const float*>(buffer) + at, row, column};
  const uint16_t* const from = static_cast<const uint16_t*>(buffer) + at;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) scratch[i * columns + j] = widen(from[i * row + j * column]);
  return {scratch, columns, 1};
}

PairedRows paired_rows_of(const void* buffer, const TensorView& view, int64_t batch, int64_t head,
                          int64_t first, int64_t rows, int64_t columns, uint16_t* scratch) {
  const uint16_t* const from = static_cast<const uint16_t*>(buffer) + view.at(batch, head, first);
  const int64_t row = view.strides[2], column = view.strides[3], even = columns + columns % 2;
  if (column == 1 && columns == even) return {from, row};
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) scratch[i * even + j] = from[i * row + j * column];
    if (columns < even) scratch[i * even + columns] = 0;
  }
  return {scratch, even};
}

void write_rows(void* buffer, const TensorView& view, DType dtype, int64_t batch, int64_t head, int64_t first,
                int64_t rows, int64_t columns, const float* from, int64_t row_stride, float factor) {
  const int64_t at = view.at(batch, head, first), row = view.strides[2], column = view.strides[3];
  if (const AttentionBf16Math* const math = attention_bf16_math(); math && dtype == bf16 && column == 1) {
    for (int64_t i = 0; i < rows; ++i)
      math->round(from + i * row_stride, static_cast<uint16_t*>(buffer) + at + i * row, columns, factor);
    return;
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      const float value = from[i * row_stride + j] * factor;
      const int64_t to = at + i * row + j * column;
      if (dtype == f32)
        static_cast<float*>(buffer)[to] = value;
      else
        static_cast<uint16_t*>(buffer)[to] = narrow(value);
    }
}

void write_columns(const AttentionMath& math, void* buffer, const TensorView& view, DType dtype,
                   int64_t batch, int64_t head, int64_t first, int64_t rows, int64_t columns,
                   const float* from, float factor, float* scratch) {
  if (dtype == f32 && view.strides[3] == 1)
    return math.transpose(from, attention_block, columns, rows,
                          static_cast<float*>(buffer) + view.at(batch, head, first), view.strides[2], factor);
  math.transpose(from, attention_block, columns, rows, scratch, columns, factor);
  write_rows(buffer, view, dtype, batch, head, first, rows, columns, scratch, columns, 1);
}

void transposed(const AttentionMath& math, const Rows& from, int64_t rows, int64_t columns, float* to) {
  if (rows < attention_block) std::fill_n(to, columns * attention_block, 0.0f);
  if (from.column == 1) return math.transpose(from.data, from.row, rows, columns, to, attention_block, 1);
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i)
      to[j * attention_block + i] = from.data[i * from.row + j * from.column];
}

void mask_scores(const AttentionMath& math, const AttentionProblem& p, void* const* operands, int64_t batch,
                 int64_t head, int64_t key, const Tile& tile, int64_t query, int64_t queries, float* scores,
                 float* bias) {
  const int64_t first = query + tile.skip, count = queries - tile.skip;
  if (p.causal && key + tile.keys - 1 > first + p.ahead)
    math.hide(scores, tile.keys, tile.columns, key - p.ahead - first);
  if (!p.mask) return;
  const void* const mask = operands[p.mask->view.buffer];
  const auto& strides = p.mask->view.strides;
  const int64_t corner = batch * strides[0] + head * strides[1];
  for (int64_t i = 0; i < tile.keys; ++i) {
    float* const row = bias + i * attention_block;
    const int64_t at = corner + (key + i) * strides[3] + first * strides[2];
    if (strides[2] == 0) {
      std::fill_n(row, tile.columns, mask_value(*p.mask, mask, at));
      continue;
    }
    for (int64_t j = 0; j < count; ++j) row[j] = mask_value(*p.mask, mask, at + j * strides[2]);
    std::fill(row + count, row + tile.columns, 0.0f);
  }
  math.add(scores, bias, tile.keys, tile.columns);
}

}  // namespace millrace::cpu

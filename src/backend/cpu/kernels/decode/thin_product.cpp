// Products of a few rows with a matrix that is read once, as steps of decoding are made of.
#include <algorithm>

#include <millrace/operator.h>

#include "backend/cpu/kernels/decode/decode_math.h"
#include "backend/cpu/kernels/geometry.h"
#include "backend/cpu/kernels/vectors.h"
#include "base/format.h"
#include "target/provider.h"

namespace millrace::cpu {

std::span<const DecodeMath* const> decode_maths() {
  static const auto maths =
      for_this_cpu(decode_math_avx512, decode_math_avx2, decode_math_baseline, decode_math_bf16_avx512);
  return maths;
}

namespace {

constexpr int64_t kMostRows = 16;  // beyond them arithmetic takes longer than reading
constexpr int64_t kAtOnce = 8;     // rows for which the matrix is read once
// Numbers of the matrix; fewer are in a cache, and others are as fast. Each of those gives a row the same
// bits in batches of any size.
constexpr int64_t kLeast = 1 << 18;
constexpr int64_t kChunkBytes = 96 << 10;

/// It takes as long as the matrix comes from memory, or the multiplications take.
double nanoseconds_of(const MatrixProduct& s) {
  const auto elements = static_cast<double>(s.n * s.k);
  return std::max(elements * static_cast<double>(s.dtype.bytes()) / 12,
                  elements * static_cast<double>(s.m) / 50);
}

/// A chunk has some rows of the matrix, and computes them for all rows of the left side.
class ThinProduct : public ChunkedKernel {
 public:
  explicit ThinProduct(const MatrixProduct& sizes) : s_(sizes) {
    const int64_t row = s_.k * s_.dtype.bytes();
    per_chunk_ = std::clamp<int64_t>(kChunkBytes / std::max<int64_t>(row, 1) / 8 * 8, 8, 4096);
  }

  int64_t chunks(int) const override { return (s_.n + per_chunk_ - 1) / per_chunk_; }
  double nanoseconds() const override { return nanoseconds_of(s_); }
  void run_chunk(int, int64_t chunk, void* const* operands, void* const* results, void*) override {
    const int64_t first = chunk * per_chunk_, last = std::min(s_.n, first + per_chunk_);
    if (s_.dtype == bf16)
      run(decode_maths().front()->halves_product, static_cast<const uint16_t*>(operands[0]),
          static_cast<const uint16_t*>(operands[1]), static_cast<uint16_t*>(results[0]), first, last);
    else
      run(decode_maths().front()->product, static_cast<const float*>(operands[0]),
          static_cast<const float*>(operands[1]), static_cast<float*>(results[0]), first, last);
  }
  std::string description() const override {
    return fmt::format("{} rows, the matrix read once, {}, {} chunks", s_.m,
                       s_.dtype == bf16 ? "AVX-512 BF16" : decode_maths().front()->name, chunks(0));
  }

 private:
  template <typename T, typename Function>
  void run(Function product, const T* x, const T* w, T* y, int64_t first, int64_t last) const {
    for (int64_t row = 0; row < s_.m; row += kAtOnce)
      product(x + row * s_.k, w, y + row * s_.n, std::min(kAtOnce, s_.m - row), s_.k, s_.n, first, last);
  }

  MatrixProduct s_;  // y[m, n] = x[m, k] · w[n, k]ᵀ
  int64_t per_chunk_;
};

/// The matrix does not lie transposed: a chunk has some rows of it, as they follow each other in memory, as
/// far as their sums stay near. These are parts of the result's, which a second stage adds.
class ThinColumns : public ChunkedKernel {
 public:
  explicit ThinColumns(const MatrixProduct& sizes) : s_(sizes) {
    strips_ = (s_.n + kMostColumns - 1) / kMostColumns;
    columns_ = ((s_.n + strips_ - 1) / strips_ + kLine - 1) / kLine * kLine;
    segments_ = std::clamp<int64_t>(s_.k / kLeastRows, 1, std::max<int64_t>(kMostChunks / strips_, 1));
    rows_ = ((s_.k + segments_ - 1) / segments_ + 3) / 4 * 4;
    segments_ = (s_.k + rows_ - 1) / rows_;
  }

  int stages() const override { return in_parts() ? 2 : 1; }
  int64_t chunks(int stage) const override { return stage == 0 ? strips_ * segments_ : s_.m; }
  double nanoseconds() const override { return nanoseconds_of(s_); }
  int64_t scratch_bytes() const override { return in_parts() ? segments_ * s_.m * pitch() * 4 : 0; }
  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    const DecodeMath& math = *decode_maths().front();
    if (s_.dtype == bf16)
      run<uint16_t>(math.half_columns, stage, chunk, operands, results[0], scratch);
    else
      run<float>(math.float_columns, stage, chunk, operands, results[0], scratch);
  }
  std::string description() const override {
    return fmt::format("{} rows, the matrix read once, as it lies, {}, {} chunks", s_.m,
                       decode_maths().front()->name, chunks(0));
  }

 private:
  // A page of the memory, and a vector of bf16.
  static constexpr int64_t kMostColumns = 1024, kLine = 32;
  static constexpr int64_t kNearSums = 8192;  // of all rows: they stay in the nearest cache
  // At least, so that few bytes are parts of sums, beside those of the matrix.
  static constexpr int64_t kLeastRows = 96;
  static constexpr int64_t kMostChunks = 32;

  /// Sums are rounded once; and those of one part alone are the result.
  bool in_parts() const { return segments_ > 1 || s_.dtype != f32; }

  /// From row to row of the parts: none of the same sets of the nearest cache as the row before.
  int64_t pitch() const { return in_parts() ? (s_.n + kLine - 1) / kLine * kLine + kLine : s_.n; }

  template <typename T>
  void run(const ColumnsMath<T>& math, int stage, int64_t chunk, void* const* operands, void* result,
           void* scratch) const {
    auto* const parts = static_cast<float*>(in_parts() ? scratch : result);
    if (stage == 1)
      return math.add_parts(parts + chunk * pitch(), segments_, s_.m * pitch(), s_.n,
                            static_cast<T*>(result) + chunk * s_.n);
    const int64_t part = chunk / strips_, row = part * rows_, first = chunk % strips_ * columns_;
    const int64_t last = std::min(first + columns_, s_.n),
                  step = std::min(columns_, kNearSums / s_.m / kLine * kLine);
    const auto* const x = static_cast<const T*>(operands[0]) + row;
    const auto* const w = static_cast<const T*>(operands[1]) + row * s_.n;
    float* const y = parts + part * s_.m * pitch();
    for (int64_t column = first; column < last; column += step)
      math.product(x, s_.k, w + column, s_.n, y + column, pitch(), s_.m, std::min(rows_, s_.k - row),
                   std::min(step, last - column));
  }

  MatrixProduct s_;  // y[m, n] = x[m, k] · w[k, n]
  int64_t strips_, columns_, segments_, rows_;
};

std::unique_ptr<Kernel> build_thin(const KernelRequest& request) {
  const MatrixProduct sizes = matrix_product_of(request.graph, request.node);
  if (sizes.transpose_b) return std::make_unique<ThinProduct>(sizes);
  return std::make_unique<ThinColumns>(sizes);
}

/// Takes products of up to 16 rows. A row's result does not depend on how many rows there are, up to 8:
/// beyond them others may be faster.
class ThinProductProvider : public OperatorProvider {
 public:
  ThinProductProvider() : OperatorProvider("only matmul", {{"matmul", build_thin}}) {}
  std::string name() const override { return "thin-product"; }

  std::optional<std::string> why_not_this(const Graph& graph, const Node& node) const override {
    const DType dtype = node.types[0].dtype;
    if (dtype != f32 && dtype != bf16) return fmt::format("only f32 and bf16, not {}", dtype.name());
    if (dtype == bf16 && !decode_maths().front()->halves_product) return "this CPU has no AVX-512 BF16";
    const Type& right = graph.type(node.operands[1]);
    const MatrixProduct s = matrix_product_of(graph, node);
    if (s.m < 1 || s.m > kMostRows) return fmt::format("more than {} rows", kMostRows);
    if (node.types[0].shape.count() != s.m * s.n) return "several matrices";
    if (node.attributes.flag("transpose_a")) return "the left side lies transposed";
    if (right.shape.count() < kLeast) return "the right side is small";
    if ((dtype == f32 || !s.transpose_b) && graph.constant_value(node.operands[1]))
      return "the right side can be packed before";
    return std::nullopt;
  }

  bool contested(const Graph& graph, const Node& node) const override {
    return matrix_product_of(graph, node).m > kAtOnce || graph.constant_value(node.operands[1]);
  }
};

}  // namespace

MILLRACE_PROVIDER(thin_product){.name = "thin-product",
                                .doc = "products of a few rows with a matrix that is read once",
                                .place = 25,
                                .make = make_provider<ThinProductProvider>};

}  // namespace millrace::cpu

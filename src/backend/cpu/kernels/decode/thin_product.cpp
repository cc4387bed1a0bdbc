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
// Of the matrix; less is in a cache, and others are as fast. Each of those gives a row the same bits in
// batches of any size.
constexpr int64_t kLeastBytes = 1 << 20;
constexpr int64_t kChunkBytes = 96 << 10;

/// A chunk has some rows of the matrix, and computes them for all rows of the left side.
class ThinProduct : public ChunkedKernel {
 public:
  explicit ThinProduct(const MatrixProduct& sizes) : s_(sizes) {
    const int64_t row = s_.k * s_.dtype.bytes();
    per_chunk_ = std::clamp<int64_t>(kChunkBytes / std::max<int64_t>(row, 1) / 8 * 8, 8, 4096);
  }

  int64_t chunks(int) const override { return (s_.n + per_chunk_ - 1) / per_chunk_; }
  double nanoseconds() const override {
    const auto elements = static_cast<double>(s_.n * s_.k);
    return std::max(elements * static_cast<double>(s_.dtype.bytes()) / 12,
                    elements * static_cast<double>(s_.m) / 50);
  }
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

std::unique_ptr<Kernel> build_thin(const KernelRequest& request) {
  return std::make_unique<ThinProduct>(matrix_product_of(request.graph, request.node));
}

/// Takes products of up to 16 rows with a matrix that lies transposed, as weights do, and is no constant:
/// those the others have packed. A row's result does not depend on how many rows there are, up to 8.
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
    if (node.attributes.flag("transpose_a") || !node.attributes.flag("transpose_b"))
      return "the right side does not lie transposed";
    if (right.bytes() < kLeastBytes) return "the right side is small";
    if (dtype == f32 && graph.constant_value(node.operands[1])) return "the right side can be packed before";
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

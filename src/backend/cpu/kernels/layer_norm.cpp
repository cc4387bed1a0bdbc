#include "backend/cpu/kernels/layer_norm.h"

#include <algorithm>
#include <cstring>

#include <millrace/operator.h>

#include "backend/cpu/kernels/vectors.h"
#include "base/format.h"
#include "ops/axis.h"
#include "ops/is.h"

namespace millrace::cpu {

std::span<const NormMath* const> norm_maths() {
  static const auto maths = for_this_cpu(norm_math_avx512, norm_math_avx2, norm_math_baseline);
  return maths;
}

namespace {

/// x seen as rows that are normalised.
struct Rows {
  int64_t count = 1, width = 1;
  float epsilon = 0;
};

Rows rows_of(const KernelRequest& request) {
  const Shape& x = request.operand_type(0).shape;
  const int64_t axis = ops::axis_of(request.node.attributes, x.rank());
  Rows rows;
  for (int d = 0; d < x.rank(); ++d) (d < axis ? rows.count : rows.width) *= x[d].size();
  rows.epsilon = static_cast<float>(request.node.attributes.number("eps"));
  return rows;
}

/// Nanoseconds of one element on one thread, forward and backward, while the data is in the cache.
constexpr double kForward = 0.13, kBackward = 0.28;
constexpr double kChunk = 1200;  // nanoseconds: not much more than handing it to another thread takes

const NormLoops& loops_for(const NormMath& math, const Rows& rows, const void* result, bool read_soon) {
  const bool far = !read_soon && rows.count * rows.width * 4 >= kFarBytes && rows.width % 16 == 0 &&
                   reinterpret_cast<uintptr_t>(result) % 64 == 0;
  return far ? math.far : math.near;
}

/// Rows of a chunk, of which there are no more than `most`.
int64_t rows_of_chunk(const Rows& rows, double nanoseconds, int64_t most) {
  const auto few = static_cast<int64_t>(kChunk / nanoseconds) / std::max<int64_t>(rows.width, 1);
  return std::max({int64_t{1}, few, (rows.count + most - 1) / most});
}

class LayerNorm : public ChunkedKernel, public RowKernel {
 public:
  LayerNorm(const Rows& rows, const NormMath& math, size_t operands)
      : rows_(rows), math_(math), operands_(operands), per_chunk_(rows_of_chunk(rows, kForward, 128)) {}

  int64_t chunks(int) const override { return (rows_.count + per_chunk_ - 1) / per_chunk_; }
  double nanoseconds() const override { return kForward * static_cast<double>(rows_.count * rows_.width); }
  void run_chunk(int, int64_t chunk, void* const* operands, void* const* results, void*) override {
    const int64_t begin = chunk * per_chunk_;
    run_rows(rows_.count, begin, std::min(rows_.count, begin + per_chunk_), operands, results, nullptr);
  }

  int64_t most_rows() const override { return rows_.count; }
  int64_t row_grain(int64_t rows) const override { return rows_.count % rows == 0 ? 1 : 0; }
  bool takes_row(int operand) const override { return operand == 0; }
  void prepare_rows(const RowUse& use) override { read_soon_ = use.read_soon; }
  void run_rows(int64_t rows, int64_t begin, int64_t end, void* const* operands, void* const* results,
                void* /*scratch*/) override {
    const auto* const x = static_cast<const float*>(operands[0]);
    const auto* const weight = operands_ > 1 ? static_cast<const float*>(operands[1]) : nullptr;
    const auto* const bias = operands_ > 2 ? static_cast<const float*>(operands[2]) : nullptr;
    auto* const y = static_cast<float*>(results[0]);
    const int64_t each = rows_.count / rows, first = begin * each * rows_.width;
    loops_for(math_, rows_, y, read_soon_)
        .forward(x + first, weight, bias, y + first, (end - begin) * each, rows_.width, rows_.epsilon);
  }
  std::string description() const override {
    return fmt::format("{} rows of {}, {}, {} chunks", rows_.count, rows_.width, math_.name, chunks(0));
  }
  bool can_alias(int operand, int) const override { return operand == 0; }

 private:
  const Rows rows_;
  const NormMath& math_;
  const size_t operands_;
  const int64_t per_chunk_;
  bool read_soon_ = false;
};

/// The parameters' gradients are summed within chunks, then over them, in order.
class LayerNormGrad : public ChunkedKernel {
 public:
  LayerNormGrad(const Rows& rows, const NormMath& math, bool weighted, bool biased)
      : rows_(rows),
        math_(math),
        weighted_(weighted),
        biased_(biased),
        per_chunk_(rows_of_chunk(rows, kBackward, 32)) {
    chunks_ = (rows_.count + per_chunk_ - 1) / per_chunk_;
    stride_ = (rows_.width + 15) / 16 * 16;
  }

  int stages() const override { return weighted_ || biased_ ? 2 : 1; }
  int64_t chunks(int stage) const override { return stage == 0 ? chunks_ : 1; }
  double nanoseconds() const override { return kBackward * static_cast<double>(rows_.count * rows_.width); }
  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    auto* const partial = static_cast<float*>(scratch);
    if (stage == 0) return run_rows(chunk, operands, results, partial);
    if (weighted_) add_up(partial, static_cast<float*>(results[1]));
    if (biased_) add_up(partial + stride_, static_cast<float*>(results[2]));
  }
  int64_t scratch_bytes() const override { return weighted_ || biased_ ? 2 * chunks_ * stride_ * 4 : 0; }
  std::string description() const override {
    return fmt::format("{} rows of {}, {}, {} chunks", rows_.count, rows_.width, math_.name, chunks_);
  }
  bool can_alias(int operand, int result) const override { return operand < 2 && result == 0; }

 private:
  void run_rows(int64_t chunk, void* const* operands, void* const* results, float* partial) const {
    const auto* const x = static_cast<const float*>(operands[0]);
    const auto* const g = static_cast<const float*>(operands[1]);
    const auto* const weight = weighted_ ? static_cast<const float*>(operands[2]) : nullptr;
    auto* const dx = static_cast<float*>(results[0]);
    float* const dweight = weighted_ ? partial + 2 * chunk * stride_ : nullptr;
    float* const dbias = biased_ ? partial + (2 * chunk + 1) * stride_ : nullptr;
    if (dweight) std::fill_n(dweight, rows_.width, 0.0f);
    if (dbias) std::fill_n(dbias, rows_.width, 0.0f);
    const int64_t begin = chunk * per_chunk_, count = std::min(per_chunk_, rows_.count - begin);
    const int64_t at = begin * rows_.width;
    loops_for(math_, rows_, dx, false)
        .backward(x + at, g + at, weight, dx + at, dweight, dbias, count, rows_.width, rows_.epsilon);
  }

  void add_up(const float* partial, float* sum) const {
    std::copy_n(partial, rows_.width, sum);
    for (int64_t chunk = 1; chunk < chunks_; ++chunk)
      for (int64_t i = 0; i < rows_.width; ++i) sum[i] += partial[2 * chunk * stride_ + i];
  }

  const Rows rows_;
  const NormMath& math_;
  const bool weighted_, biased_;
  const int64_t per_chunk_;
  int64_t chunks_ = 0, stride_ = 0;
};

std::unique_ptr<Kernel> build_layer_norm(const KernelRequest& request) {
  return make_layer_norm(request, *norm_maths().front());
}

/// Takes layer_norm and layer_norm_grad in f32. A row is read from memory once: its sums are taken while it
/// is in the cache. The gradients of weight and bias are added up by chunks of rows, which are fixed by the
/// problem, and these in order. Works in place.
std::optional<std::string> why_no_layer_norm(const Graph& graph, const Node& node) {
  for (const Value& operand : node.operands) {
    if (graph.type(operand).dtype != f32) return "only f32";
    if (graph.type(operand).shape.count() == 0) return "an operand is empty";
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Kernel> make_layer_norm(const KernelRequest& request, const NormMath& math) {
  const Rows rows = rows_of(request);
  const size_t operands = request.node.operands.size();
  if (ops::is(request.node, "layer_norm")) return std::make_unique<LayerNorm>(rows, math, operands);
  return std::make_unique<LayerNormGrad>(rows, math, operands > 2, request.node.types.size() > 2);
}

MILLRACE_PROVIDER(layer_norm){.name = "layer-norm",
                              .doc = "layer norms and their gradients in one pass over memory",
                              .place = 70,
                              .make = [] {
                                return kernels_of(
                                    {{"layer_norm", build_layer_norm}, {"layer_norm_grad", build_layer_norm}},
                                    why_no_layer_norm);
                              }};

}  // namespace millrace::cpu

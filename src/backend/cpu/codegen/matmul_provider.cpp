#include <algorithm>
#include <bit>

#include <millrace/operator.h>

#include "backend/cpu/codegen/codegen_provider.h"
#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/codegen/matmul.h"
#include "backend/cpu/kernels/geometry.h"
#include "base/cpu.h"
#include "base/format.h"
#include "target/provider.h"
#include "target/shared_constants.h"

namespace millrace {
namespace {

using codegen::Code;
using codegen::Product;

// Beyond these sizes oneDNN's blocking for the caches is worth its calls.
constexpr double kMostOperations = 64e6;
constexpr int64_t kLongestSum = 1024;
// Up to this a call of oneDNN costs too much; above, the plan times both.
constexpr double kUncontested = 16e6;
// Of a chunk.
constexpr double kChunkNanoseconds = 2000;

Product product_of(const cpu::MatrixProduct& sizes) {
  Product p{.m = sizes.m, .k = sizes.k, .n = sizes.n, .transpose_a = sizes.transpose_a};
  if (!cpu_has("avx512f")) {
    p.lanes = 8;
    p.registers = 16;
  }
  return p;
}

/// A constant right side is packed once, a steady one in prepare(); another that is transposed gets a nest of
/// its own before.
class SmallMatmul : public ChunkedKernel, public PackingKernel {
 public:
  SmallMatmul(const Product& product, bool transpose_b, const Array* constant, bool steady)
      : p_(product), transpose_b_(transpose_b), steady_(steady) {
    p_.panels_packed = constant || steady;
    code_ = compiled(p_.rows());
    if (p_.last_rows() < p_.rows()) last_ = compiled(p_.last_rows());
    // A row or two wait for the right side, which comes from the caches at 100 GB/s.
    const double operations = 2.0 * static_cast<double>(p_.m * p_.k * p_.n);
    const double right_bytes = 4.0 * static_cast<double>(p_.k * p_.n);
    nanoseconds_ = std::max(operations, right_bytes) / 100;
    // Two already where a chunk of half that remains: of a loop's steps, which follow each other at once,
    // each core then reads its half of the weights from its own cache.
    const double chunks = std::clamp(nanoseconds_ / kChunkNanoseconds, 1.0, 32.0);
    const auto wanted = static_cast<int64_t>(
        std::bit_ceil(std::max<uint64_t>(static_cast<uint64_t>(chunks), chunks > 1 ? 2 : 1)));
    outer_ = p_.outer_count();
    per_chunk_ = (outer_ + wanted - 1) / wanted;
    if (constant)
      packed_ = {shared_form(
          *constant, fmt::format("panels of {}{}", p_.panel_columns(), transpose_b ? ", transposed" : ""),
          {f32, {p_.panels(), p_.k, p_.panel_columns()}}, [&](Array& packed) {
            for (int64_t panel = 0; panel < p_.panels(); ++panel)
              pack(constant->as<float>().data(), packed.as<float>().data(), panel);
          })};
    else if (transpose_b_ && !steady_)
      build_transpose();
  }

  /// What is kept is a program's own.
  std::unique_ptr<Kernel> another() const override {
    if (!steady_) return nullptr;
    return std::make_unique<SmallMatmul>(p_, transpose_b_, nullptr, true);
  }
  int64_t kept_bytes() const override { return steady_ ? 4 * p_.panels() * p_.k * p_.panel_columns() : 0; }
  void prepare(void* const* operands, void* kept, void* /*scratch*/, DeviceContext device) override {
    if (!steady_) return;
    kept_ = static_cast<float*>(kept);
    device.threads().parallel(
        p_.panels(), [&](int64_t panel) { pack(static_cast<const float*>(operands[1]), kept_, panel); });
  }
  int stages() const override { return transpose_ ? transpose_->stages() + 1 : 1; }
  int64_t chunks(int stage) const override {
    if (stage < stages() - 1) return transpose_->chunks(stage);
    return (outer_ + per_chunk_ - 1) / per_chunk_;
  }
  double nanoseconds() const override { return nanoseconds_ + (transpose_ ? transpose_->nanoseconds() : 0); }
  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    if (transpose_ && stage < transpose_->stages())
      return transpose_->run_chunk(stage, chunk, operands + 1, &scratch, nullptr);
    const void* const right = transpose_         ? scratch
                              : steady_          ? kept_
                              : !packed_.empty() ? packed_[0].data()
                                                 : operands[1];
    const int64_t begin = chunk * per_chunk_;
    run_blocks(operands[0], right, results[0], begin, std::min(begin + per_chunk_, outer_));
  }
  int64_t scratch_bytes() const override { return transpose_ ? p_.k * p_.n * 4 : 0; }
  std::string description() const override {
    return fmt::format("{}blocks of {}×{}, {} chunks",
                       transpose_ ? "transpose, "
                       : steady_  ? "packed before, "
                                  : "",
                       p_.rows(), p_.block_columns(), chunks(stages() - 1));
  }

 private:
  std::shared_ptr<const Code> compiled(int64_t rows) const {
    return codegen::compile(p_.text(rows), [&](llvm::Module& module, const std::string& name) {
      codegen::emit_product(p_, rows, module, name);
    });
  }

  void run_blocks(void* a, const void* right, void* y, int64_t begin, int64_t end) const {
    const int64_t blocks = p_.row_blocks(), full = last_ ? blocks - 1 : blocks;
    void* const buffers[] = {a, const_cast<void*>(right), y};
    if (!last_) return code_->function(buffers, begin, end, blocks);
    const int64_t above = full * p_.rows();
    void* const last_buffers[] = {static_cast<float*>(a) + above * (p_.transpose_a ? 1 : p_.k), buffers[1],
                                  static_cast<float*>(y) + above * p_.n};
    for (int64_t at = begin; at < end;) {
      const int64_t columns = at / blocks, first = at % blocks, past = std::min(blocks, first + end - at);
      if (first < full)
        code_->function(buffers, columns * full + first, columns * full + std::min(past, full), full);
      if (past == blocks) last_->function(last_buffers, columns, columns + 1, 1);
      at += past - first;
    }
  }

  /// A panel of columns. What lies behind the last column is zero.
  void pack(const float* from, float* to, int64_t panel) const {
    const int64_t width = p_.panel_columns(), row = transpose_b_ ? 1 : p_.n, column = transpose_b_ ? p_.k : 1,
                  first = panel * width, count = std::min(width, p_.n - first);
    to += panel * p_.k * width;
    for (int64_t k = 0; k < p_.k; ++k, to += width) {
      const float* const own = from + k * row + first * column;
      if (column == 1)
        std::copy(own, own + count, to);
      else
        for (int64_t n = 0; n < count; ++n) to[n] = own[n * column];
      std::fill(to + count, to + width, 0.0F);
    }
  }

  void build_transpose() {
    Graph graph;
    const Value b = graph.input("b", {f32, {p_.n, p_.k}});
    const Value y = graph.add("transpose", {b}, {{"permutation", std::vector<int64_t>{1, 0}}});
    const auto provider = make_codegen_provider();
    kernel_ = provider->build({graph, graph.node(y), {{}}, {{}}});
    transpose_ = dynamic_cast<ChunkedKernel*>(kernel_.get());
    MILLRACE_CHECK(transpose_ && transpose_->scratch_bytes() == 0, "a transpose is one nest");
  }

  Product p_;
  std::shared_ptr<const Code> code_, last_;  // null: all blocks are as high
  bool transpose_b_, steady_;
  std::unique_ptr<Kernel> kernel_;
  ChunkedKernel* transpose_ = nullptr;  // kernel_
  float* kept_ = nullptr;               // a steady one
  int64_t outer_ = 1, per_chunk_ = 1;
  double nanoseconds_ = 0;
};

std::unique_ptr<Kernel> build_small(const KernelRequest& request) {
  const cpu::MatrixProduct sizes = cpu::matrix_product_of(request.graph, request.node);
  const Array* constant = request.graph.constant_value(request.node.operands[1]);
  return std::make_unique<SmallMatmul>(product_of(sizes), sizes.transpose_b, constant,
                                       !constant && request.is_steady(1));
}

class SmallMatmulProvider : public OperatorProvider {
 public:
  SmallMatmulProvider() : OperatorProvider("only matmul", {{"matmul", build_small}}) {}
  std::string name() const override { return "small-matmul"; }

  std::optional<std::string> why_not_this(const Graph& graph, const Node& node) const override {
    if (node.types[0].dtype != f32) return fmt::format("only f32, not {}", node.types[0].dtype.name());
    const cpu::MatrixProduct p = cpu::matrix_product_of(graph, node);
    if (node.types[0].shape.count() == 0 || p.k == 0) return "an operand or the result is empty";
    if (node.types[0].shape.count() != p.m * p.n) return "several matrices";
    if (p.operations() > kMostOperations || p.k > kLongestSum) return "too large";
    return std::nullopt;
  }

  bool contested(const Graph& graph, const Node& node) const override {
    return cpu::matrix_product_of(graph, node).operations() > kUncontested;
  }
};

}  // namespace

namespace cpu {
MILLRACE_PROVIDER(small_matmul){
    .name = "small-matmul",
    .doc = "small f32 matrix products, compiled for the sizes of their right side",
    .place = 30,
    .make = make_provider<SmallMatmulProvider>};
}  // namespace cpu

}  // namespace millrace

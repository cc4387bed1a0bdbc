#include "target/provider.h"

#include <millrace/operator.h>

#include "backend/cpu/kernels/attention/problem.h"
#include "backend/cpu/kernels/gemm/arithmetic.h"
#include "base/format.h"
#include "ops/attention.h"

namespace millrace::cpu {
namespace {

/// Takes attention, self_attention and their gradients in f32 and bf16, whole: blocks of scores live in the
/// cache only, with the running maximum and sum of the softmax (Dao, FlashAttention-2, 2023), so memory is
/// linear in the length. Products of bf16 are sums of bf16 pairs in f32 where the CPU has AVX512_BF16, else
/// of f32 copies. Operands are read where they lie, whatever their layout. Chunks and the order of sums are
/// fixed by the problem: results are the same for any number of threads.
class AttentionProvider : public Provider {
 public:
  std::string name() const override { return "kernels"; }

  std::optional<std::string> why_not(const Graph& graph, const Node& node) const override {
    if (!ops::attention_form(node)) return "only attention";
    const DType dtype = node.types[0].dtype;
    if (dtype != f32 && dtype != bf16) return fmt::format("only f32 and bf16, not {}", dtype.name());
    for (const Value& operand : node.operands)
      if (graph.type(operand).shape.count() == 0) return "an operand is empty";
    return std::nullopt;
  }

  bool concerns(const Node& node) const override { return ops::attention_form(node).has_value(); }

  /// Tensors of four dimensions in any layout; rows of queries and the mask row-major.
  LayoutWish layouts(const Graph& /*graph*/, const Node& node) const override {
    LayoutWish wish;
    const auto [packed, backward] = *ops::attention_form(node);
    const size_t tensors = (packed ? 1 : 3) + (backward ? 1 : 0);
    for (size_t i = 0; i < node.operands.size(); ++i)
      wish.operands.push_back(i < tensors ? std::nullopt : std::optional<Layout>(Layout{}));
    for (const Type& type : node.types)
      wish.results.push_back(type.shape.rank() == 4 ? std::nullopt : std::optional<Layout>(Layout{}));
    return wish;
  }

  std::unique_ptr<Kernel> build(const KernelRequest& request) const override {
    return build_by(request, attention_bf16_math());
  }

 protected:
  /// Products of bf16 by `bf16_math`, where that is not null.
  static std::unique_ptr<Kernel> build_by(const KernelRequest& request, const AttentionBf16Math* bf16_math) {
    const AttentionProblem problem = attention_problem(request);
    const bool backward = ops::attention_form(request.node)->backward;
    if (problem.dtype == bf16 && bf16_math)
      return backward ? make_attention_backward_bf16(problem, *bf16_math)
                      : make_attention_forward_bf16(problem, *bf16_math);
    const AttentionMath& math = *attention_maths().front();
    return backward ? make_attention_backward(problem, math) : make_attention_forward(problem, math);
  }
};

/// The same in bf16 by the CPU's tiles. What surrounds the products is the larger part of short rows, and
/// tiles need their left sides turned: vectors may be faster.
class AttentionTilesProvider : public AttentionProvider {
 public:
  std::string name() const override { return "kernels-by-tiles"; }

  std::optional<std::string> why_not(const Graph& graph, const Node& node) const override {
    if (auto reason = AttentionProvider::why_not(graph, node)) return reason;
    if (node.types[0].dtype != bf16) return "only bf16";
    return gemm::tiles_work() ? std::nullopt : std::optional<std::string>("the CPU has no tiles (AMX)");
  }

  std::unique_ptr<Kernel> build(const KernelRequest& request) const override {
    return build_by(request, &attention_math_bf16_amx());
  }

  bool contested(const Graph& /*graph*/, const Node& /*node*/) const override { return true; }
};

}  // namespace

MILLRACE_PROVIDER(attention_by_tiles){.name = "attention-by-tiles",
                                      .doc = "attention in bf16 and its gradient by the CPU's tiles",
                                      .place = 55,
                                      .make = make_provider<AttentionTilesProvider>};
MILLRACE_PROVIDER(attention){.name = "attention",
                             .doc = "attention and its gradient in tiles",
                             .place = 60,
                             .make = make_provider<AttentionProvider>};

}  // namespace millrace::cpu

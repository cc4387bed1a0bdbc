#include "backend/cpu/kernels/gemm/provider.h"

#include <algorithm>

#include <millrace/operator.h>

#include "backend/cpu/kernels/gemm/kernels.h"
#include "backend/cpu/kernels/vectors.h"
#include "base/format.h"

namespace millrace::cpu {
namespace {

class GemmProvider : public Provider {
 public:
  std::string name() const override { return "gemm"; }

  std::optional<std::string> why_not(const Graph& graph, const Node& node) const override {
    const std::string_view op = node.op->name;
    const bool product = op == "matmul", gradient = op == "conv2d_weight_grad";
    if (!product && !gradient && op != "conv2d" && op != "conv2d_input_grad")
      return "only matmul and 2-D convolutions";
    const DType dtype = node.types[0].dtype;
    if (dtype != f32 && dtype != bf16) return fmt::format("only f32 and bf16, not {}", dtype.name());
    if (!has_avx512()) return "this CPU has no AVX-512";
    if (dtype == bf16 && !has_avx512_bf16()) return "this CPU has no AVX-512 BF16";
    const auto empty = [&](Value v) { return graph.type(v).shape.count() == 0; };
    if (node.types[0].shape.count() == 0 || std::any_of(node.operands.begin(), node.operands.end(), empty))
      return "an operand or the result is empty";
    return product    ? gemm::why_no_matmul(graph, node)
           : gradient ? gemm::why_no_weight_gradient(graph, node)
                      : gemm::why_no_convolution(graph, node);
  }

  LayoutWish layouts(const Graph& /*graph*/, const Node& node) const override {
    const Layout row_major, channels_last{0, 2, 3, 1};
    if (node.op->name == "matmul") return {{row_major, row_major}, {row_major}};
    if (node.op->name == "conv2d_weight_grad") return {{channels_last, channels_last}, {row_major}};
    return {{channels_last, row_major}, {channels_last}};
  }

  /// oneDNN's kernels know the CPU better, but pack again and again.
  bool contested(const Graph& /*graph*/, const Node& /*node*/) const override { return true; }

  std::unique_ptr<Kernel> build(const KernelRequest& request) const override {
    const std::string_view op = request.node.op->name;
    if (op == "matmul") return gemm::build_matmul(request);
    if (op == "conv2d_weight_grad") return gemm::build_weight_gradient(request);
    return gemm::build_convolution(request);
  }
};

}  // namespace

std::unique_ptr<Provider> make_gemm_provider() { return std::make_unique<GemmProvider>(); }

}  // namespace millrace::cpu

#include "target/provider.h"

#include <millrace/operator.h>

#include "backend/cpu/kernels/gemm/kernels.h"
#include "backend/cpu/kernels/geometry.h"
#include "backend/cpu/kernels/vectors.h"
#include "ops/convolution.h"

namespace millrace::cpu {
namespace {

class GemmProvider : public ProductProvider {
 public:
  GemmProvider()
      : ProductProvider(gemm::build_convolution, gemm::build_weight_gradient, gemm::build_matmul) {}
  std::string name() const override { return "gemm"; }

  std::optional<std::string> why_not_this(const Graph& graph, const Node& node) const override {
    const DType dtype = node.types[0].dtype;
    const auto part = ops::convolution_part(node);
    if (auto reason = why_no_products(dtype)) return reason;
    if (is_empty(graph, node)) return "an operand or the result is empty";
    if (!part) return gemm::why_no_matmul(graph, node);
    return part == ops::ConvolutionPart::weight_gradient ? gemm::why_no_weight_gradient(graph, node)
                                                         : gemm::why_no_convolution(graph, node);
  }

  /// oneDNN's kernels know the CPU better, but pack again and again.
  bool contested(const Graph& /*graph*/, const Node& /*node*/) const override { return true; }
};

}  // namespace

MILLRACE_PROVIDER(gemm){.name = "gemm",
                        .doc = "packed matrix products, and convolutions as products",
                        .place = 40,
                        .make = make_provider<GemmProvider>};

}  // namespace millrace::cpu

#include "target/provider.h"

#include <millrace/operator.h>

#include "backend/cpu/kernels/vectors.h"
#include "backend/cpu/kernels/winograd/kernels.h"
#include "ops/convolution.h"

namespace millrace::cpu {
namespace {

/// Both precisions of a kernel.
template <auto F32, auto Bf16>
std::unique_ptr<Kernel> either(const KernelRequest& request) {
  return request.operand_type(0).dtype == bf16 ? Bf16(request) : F32(request);
}
constexpr auto convolution = either<winograd::build_convolution, winograd::build_convolution_bf16>;
constexpr auto weight_gradient =
    either<winograd::build_weight_gradient, winograd::build_weight_gradient_bf16>;

/// Takes conv2d, conv2d_input_grad and conv2d_weight_grad with 3×3 windows, stride 1, dilation 1 and one
/// group, in f32, on CPUs with AVX-512. Results differ from exact ones by at most about 1e-5 of the largest
/// (2e-7 the direct way): the tests hold every kernel to 5e-5.
class WinogradProvider : public OperatorProvider {
 public:
  WinogradProvider()
      : OperatorProvider("only 2-D convolutions", {{"conv2d", convolution},
                                                   {"fused_conv2d", convolution},
                                                   {"conv2d_input_grad", convolution},
                                                   {"conv2d_weight_grad", weight_gradient}}) {}
  std::string name() const override { return "winograd"; }

  std::optional<std::string> why_not_this(const Graph& graph, const Node& node) const override {
    const DType dtype = graph.type(node.operands[0]).dtype;
    if (auto reason = why_no_avx512_products(dtype)) return reason;
    const Geometry g = geometry_of(graph, node);
    if (g.kernel_height != 3 || g.kernel_width != 3) return "only windows of 3×3";
    if (g.stride_h != 1 || g.stride_w != 1) return "only stride 1";
    if (g.dilation_h != 1 || g.dilation_w != 1) return "only dilation 1";
    if (g.groups != 1) return "only one group";
    if (g.top > 2 || g.left > 2 || g.bottom > 2 || g.right > 2) return "only padding up to 2";
    if (g.in_channels < 16 || g.out_channels < 16) return "fewer than 16 channels";
    if (g.out_height < 2 || g.out_width < 2) return "most of a tile would lie outside of the map";
    const auto part = ops::convolution_part(node);
    if (dtype == bf16 && part != ops::ConvolutionPart::weight_gradient &&
        (part == ops::ConvolutionPart::forward ? g.in_channels : g.out_channels) > 512)
      return "more than 512 channels to sum over";
    if (g.work() < 3e7) return "too little work to make a difference";
    return std::nullopt;
  }

  LayoutWish layouts(const Graph& /*graph*/, const Node& node) const override {
    return product_layouts(node);
  }

  /// On few channels and small maps the transforms may cost more than the products save.
  bool contested(const Graph& /*graph*/, const Node& /*node*/) const override { return true; }
  bool exact() const override { return false; }
};

}  // namespace

MILLRACE_PROVIDER(winograd){.name = "winograd",
                            .doc = "3×3 convolutions by Winograd's minimal filtering, F(4×4, 3×3)",
                            .place = 20,
                            .make = make_provider<WinogradProvider>};

}  // namespace millrace::cpu

#include "target/provider.h"

#include <algorithm>

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
/// group, on CPUs with AVX2 or AVX-512, and in bf16 with its BF16 instructions; and the first two with 5×5
/// windows, in f32. Results differ from exact ones by at most about 1e-5 of the largest (2e-7 the direct
/// way): the tests hold every kernel to 5e-5.
class WinogradProvider : public ProductProvider {
 public:
  WinogradProvider() : ProductProvider(convolution, weight_gradient) {}
  std::string name() const override { return "winograd"; }

  std::optional<std::string> why_not_this(const Graph& graph, const Node& node) const override {
    const DType dtype = graph.type(node.operands[0]).dtype;
    if (auto reason = why_no_products(dtype)) return reason;
    const Geometry g = geometry_of(graph, node);
    const auto part = ops::convolution_part(node);
    const int64_t window = g.kernel_height;
    if (g.kernel_width != window || (window != 3 && window != 5)) return "only windows of 3×3 and 5×5";
    if (window == 5 && (dtype != f32 || part == ops::ConvolutionPart::weight_gradient))
      return "windows of 5×5 only in f32, and not their gradient";
    if (g.stride_h != 1 || g.stride_w != 1) return "only stride 1";
    if (g.dilation_h != 1 || g.dilation_w != 1) return "only dilation 1";
    if (g.groups != 1) return "only one group";
    if (std::max({g.top, g.left, g.bottom, g.right}) >= window) return "only padding that windows overlap";
    if (g.in_channels < 16 || g.out_channels < 16) return "fewer than 16 channels";
    if (g.out_height < 2 || g.out_width < 2) return "most of a tile would lie outside of the map";
    if (dtype == bf16 && part != ops::ConvolutionPart::weight_gradient &&
        (part == ops::ConvolutionPart::forward ? g.in_channels : g.out_channels) > 512)
      return "more than 512 channels to sum over";
    // (A gradient's weights are transformed in each step.)
    if (g.work() < (window == 5 && graph.constant_value(node.operands[1]) ? 1e6 : 3e7))
      return "too little work to make a difference";
    return std::nullopt;
  }

  /// On few channels and small maps the transforms may cost more than the products save.
  bool contested(const Graph& /*graph*/, const Node& /*node*/) const override { return true; }
  bool exact() const override { return false; }
};

}  // namespace

MILLRACE_PROVIDER(winograd){
    .name = "winograd",
    .doc = "3×3 and 5×5 convolutions by Winograd's minimal filtering, F(4×4, 3×3) and F(4×4, 5×5)",
    .place = 20,
    .make = make_provider<WinogradProvider>};

}  // namespace millrace::cpu

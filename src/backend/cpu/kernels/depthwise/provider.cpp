#include "target/provider.h"

#include <millrace/operator.h>

#include "backend/cpu/kernels/depthwise/kernels.h"
#include "base/format.h"

namespace millrace::cpu {
namespace {

std::unique_ptr<Kernel> convolution(const KernelRequest& request) {
  return depthwise::build_convolution(request, *depthwise::arithmetics().front());
}
std::unique_ptr<Kernel> weight_gradient(const KernelRequest& request) {
  return depthwise::build_weight_gradient(request, *depthwise::arithmetics().front());
}

/// Takes conv2d and both its gradients where groups, channels and results are equally many, in f32 and bf16,
/// with kernels of up to 128 elements and any stride, dilation and padding. Sums are in f32.
class DepthwiseProvider : public ProductProvider {
 public:
  DepthwiseProvider() : ProductProvider(convolution, weight_gradient) {}
  std::string name() const override { return "depthwise"; }

  std::optional<std::string> why_not_this(const Graph& graph, const Node& node) const override {
    const DType dtype = node.types[0].dtype;
    if (dtype != f32 && dtype != bf16) return fmt::format("only f32 and bf16, not {}", dtype.name());
    if (is_empty(graph, node)) return "an operand or the result is empty";
    const Geometry g = geometry_of(graph, node);
    if (g.in_channels != g.groups || g.out_channels != g.groups)
      return "only as many groups as channels and results";
    if (node.operands.size() == 4) return "only a bias, no residual";
    if (node.operands.size() == 3 &&
        (!graph.constant_value(node.operands[1]) || !graph.constant_value(node.operands[2])))
      return "only constant weights and bias";
    if (g.kernel_height * g.kernel_width > depthwise::max_taps) return "only kernels of up to 128 elements";
    return std::nullopt;
  }

  bool contested(const Graph& /*graph*/, const Node& /*node*/) const override { return true; }
};

}  // namespace

MILLRACE_PROVIDER(depthwise){.name = "depthwise",
                             .doc = "convolutions in which every channel has a kernel of its own",
                             .place = 10,
                             .make = make_provider<DepthwiseProvider>};

}  // namespace millrace::cpu

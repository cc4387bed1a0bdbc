#include "backend/cpu/kernels/depthwise/provider.h"

#include <algorithm>

#include <millrace/operator.h>

#include "backend/cpu/kernels/depthwise/kernels.h"
#include "base/format.h"

namespace millrace::cpu {
namespace {

class DepthwiseProvider : public Provider {
 public:
  std::string name() const override { return "depthwise"; }

  std::optional<std::string> why_not(const Graph& graph, const Node& node) const override {
    const std::string_view op = node.op->name;
    if (op != "conv2d" && op != "conv2d_input_grad" && op != "conv2d_weight_grad")
      return "only 2-D convolutions";
    const DType dtype = node.types[0].dtype;
    if (dtype != f32 && dtype != bf16) return fmt::format("only f32 and bf16, not {}", dtype.name());
    const auto empty = [&](Value v) { return graph.type(v).shape.count() == 0; };
    if (node.types[0].shape.count() == 0 || std::any_of(node.operands.begin(), node.operands.end(), empty))
      return "an operand or the result is empty";
    const Geometry g = geometry_of(graph, node);
    if (g.in_channels != g.groups || g.out_channels != g.groups)
      return "only as many groups as channels and results";
    if (g.kernel_height * g.kernel_width > depthwise::max_taps) return "only kernels of up to 128 elements";
    return std::nullopt;
  }

  LayoutWish layouts(const Graph& /*graph*/, const Node& node) const override {
    const Layout row_major, channels_last{0, 2, 3, 1};
    if (node.op->name == "conv2d_weight_grad") return {{channels_last, channels_last}, {row_major}};
    return {{channels_last, row_major}, {channels_last}};
  }

  bool contested(const Graph& /*graph*/, const Node& /*node*/) const override { return true; }

  std::unique_ptr<Kernel> build(const KernelRequest& request) const override {
    const depthwise::Arithmetic& arithmetic = *depthwise::arithmetics().front();
    return request.node.op->name == "conv2d_weight_grad"
               ? depthwise::build_weight_gradient(request, arithmetic)
               : depthwise::build_convolution(request, arithmetic);
  }
};

}  // namespace

std::unique_ptr<Provider> make_depthwise_provider() { return std::make_unique<DepthwiseProvider>(); }

}  // namespace millrace::cpu

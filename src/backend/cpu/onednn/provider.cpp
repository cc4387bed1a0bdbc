#include "backend/cpu/onednn/provider.h"

#include <algorithm>

#include <millrace/operator.h>

#include "backend/cpu/onednn/convolution.h"
#include "backend/cpu/onednn/matmul.h"
#include "backend/cpu/onednn/staged_kernel.h"
#include "base/format.h"

namespace millrace {
namespace {

bool takes(std::string_view op) {
  return op == "matmul" || op == "conv2d" || op == "conv2d_input_grad" || op == "conv2d_weight_grad";
}

bool empty(const Type& type) { return type.shape.count() == 0; }

class OneDnnProvider : public Provider {
 public:
  std::string name() const override { return "onednn"; }

  std::optional<std::string> why_not(const Graph& graph, const Node& node) const override {
    if (!takes(node.op->name)) return "only matmul and 2-D convolutions";
    const DType dtype = node.types[0].dtype;
    if (dtype != f32 && dtype != bf16) return fmt::format("only f32 and bf16, not {}", dtype.name());
    if (empty(node.types[0]) || std::any_of(node.operands.begin(), node.operands.end(),
                                            [&](Value v) { return empty(graph.type(v)); }))
      return "an operand or the result is empty";
    return std::nullopt;
  }

  LayoutWish layouts(const Graph& /*graph*/, const Node& node) const override {
    const Layout row_major, channels_last{0, 2, 3, 1};
    if (node.op->name == "matmul") return {{row_major, row_major}, {row_major}};
    if (node.op->name == "conv2d_weight_grad") return {{channels_last, channels_last}, {row_major}};
    return {{channels_last, row_major}, {channels_last}};
  }

  std::unique_ptr<Kernel> build(const KernelRequest& request) const override {
    const onednn::OneThread one_thread;
    const std::string_view op = request.node.op->name;
    try {
      if (op == "matmul") return onednn::build_matmul(request);
      if (op == "conv2d_weight_grad") return onednn::build_weight_gradient(request);
      return onednn::build_convolution(request);
    } catch (const dnnl::error& e) {
      fail<InternalError>("{} at {}: oneDNN cannot build it: {}", op, request.node.location.str(), e.what());
    }
  }
};

}  // namespace

std::unique_ptr<Provider> make_onednn_provider() { return std::make_unique<OneDnnProvider>(); }

}  // namespace millrace

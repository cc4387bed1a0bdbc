#include "target/provider.h"

#include <millrace/operator.h>

#include "backend/cpu/kernels/geometry.h"
#include "backend/cpu/onednn/geometry.h"
#include "backend/cpu/onednn/matmul.h"
#include "backend/cpu/onednn/staged_kernel.h"
#include "base/format.h"

namespace millrace {
namespace {

/// Takes matmul, conv2d, conv2d_input_grad and conv2d_weight_grad in f32 and bf16. Convolutions want
/// activations channels-last, weights stay row-major; constant weights are packed once, when the kernel is
/// built. The work is split into chunks that depend on the problem only and that no sum crosses (or whose
/// partial sums are added in a fixed order), so results are the same for any number of threads.
class OneDnnProvider : public cpu::ProductProvider {
 public:
  OneDnnProvider()
      : ProductProvider(onednn::build_convolution, onednn::build_weight_gradient, onednn::build_matmul) {}
  std::string name() const override { return "onednn"; }

  std::optional<std::string> why_not_this(const Graph& graph, const Node& node) const override {
    const DType dtype = node.types[0].dtype;
    if (dtype != f32 && dtype != bf16) return fmt::format("only f32 and bf16, not {}", dtype.name());
    if (dtype == bf16 && !onednn::computes_bf16()) return "bf16 takes AVX-512";
    if (is_empty(graph, node)) return "an operand or the result is empty";
    return std::nullopt;
  }

  std::unique_ptr<Kernel> build(const KernelRequest& request) const override {
    const onednn::OneThread one_thread;
    try {
      return ProductProvider::build(request);
    } catch (const dnnl::error& e) {
      fail<InternalError>("{} at {}: oneDNN cannot build it: {}", request.node.op->name,
                          request.node.origin.str(), e.what());
    }
  }
};

}  // namespace

namespace cpu {
MILLRACE_PROVIDER(onednn){.name = "onednn",
                          .doc = "matrix products and convolutions of oneDNN",
                          .place = 50,
                          .make = make_provider<OneDnnProvider>};
}  // namespace cpu

}  // namespace millrace

#include "backend/ref/provider.h"

#include <cstring>

#include <millrace/operator.h>

#include "backend/ref/evaluate.h"
#include "ir/alone.h"
#include "target/device.h"

namespace millrace {
namespace ref {
namespace {

/// Evaluates the node as ref::evaluate does; it allocates, which only this back end may.
class RefKernel : public Kernel {
 public:
  /// The request's graph need not outlive the kernel.
  explicit RefKernel(const KernelRequest& request) : graph_(alone(request.graph, request.node)) {}

  void run(void* const* operands, void* const* results, void*, DeviceContext) override {
    std::vector<Array> inputs;
    for (size_t i = 0; i < graph_.inputs().size(); ++i)
      inputs.emplace_back(graph_.type(graph_.inputs()[i]), operands[i], std::shared_ptr<void>());
    const std::vector<Array> outputs = evaluate(graph_, inputs);
    for (size_t r = 0; r < outputs.size(); ++r)
      std::memcpy(results[r], outputs[r].data(), static_cast<size_t>(outputs[r].bytes()));
  }

  std::string description() const override { return "plain loops"; }

 private:
  Graph graph_;
};

class RefProvider : public Provider {
 public:
  std::string name() const override { return "ref"; }
  std::optional<std::string> why_not(const Graph&, const Node& node) const override {
    if (node.body) return "composites are evaluated through their bodies";
    return std::nullopt;
  }
  std::unique_ptr<Kernel> build(const KernelRequest& request) const override {
    return std::make_unique<RefKernel>(request);
  }
};

}  // namespace

std::unique_ptr<Provider> make_provider() { return std::make_unique<RefProvider>(); }

}  // namespace ref

MILLRACE_TARGET(ref){"ref", "every operator computed plainly: the judge of all other kernels",
                     []() -> const Target& {
                       static const Target* const target = [] {
                         auto* made = new Target;
                         made->name = "ref";
                         made->fast_bf16 = true;  // so that it judges the others' bf16
                         made->providers.push_back(ref::make_provider());
                         return made;
                       }();
                       return *target;
                     }};

}  // namespace millrace

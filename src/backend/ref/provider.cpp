#include "backend/ref/provider.h"

#include <cstring>

#include <millrace/operator.h>

#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "target/device.h"

namespace millrace {
namespace ref {
namespace {

/// Evaluates the node as ref::evaluate does; it allocates, which only this back end may.
class RefKernel : public Kernel {
 public:
  explicit RefKernel(const KernelRequest& request) {
    // The node in a graph of its own: the request's graph need not outlive the kernel.
    std::vector<Value> operands;
    for (size_t i = 0; i < request.node.operands.size(); ++i) {
      operand_types_.push_back(request.operand_type(static_cast<int>(i)));
      operands.push_back(graph_.input(fmt::format("x{}", i), operand_types_.back()));
    }
    const Value added =
        request.node.op->takes_body()
            ? graph_.add_with_body(*request.node.op, operands, request.node.attributes, request.node.body)
            : graph_.add(*request.node.op, operands, request.node.attributes);
    std::vector<Value> outputs;
    for (size_t r = 0; r < request.node.types.size(); ++r)
      outputs.push_back({added.node, static_cast<int32_t>(r)});
    graph_.set_outputs(outputs);
  }

  void run(void* const* operands, void* const* results, void*, DeviceContext) override {
    std::vector<Array> inputs;
    for (size_t i = 0; i < operand_types_.size(); ++i)
      inputs.emplace_back(operand_types_[i], operands[i], std::shared_ptr<void>());
    const std::vector<Array> outputs = evaluate(graph_, inputs);
    for (size_t r = 0; r < outputs.size(); ++r)
      std::memcpy(results[r], outputs[r].data(), static_cast<size_t>(outputs[r].bytes()));
  }

  std::string description() const override { return "plain loops"; }

 private:
  Graph graph_;
  std::vector<Type> operand_types_;
};

class RefProvider : public Provider {
 public:
  std::string name() const override { return "ref"; }
  std::optional<std::string> why_not(const Graph&, const Node& node) const override {
    if (node.body) return "composites are evaluated through their bodies";
    return std::nullopt;
  }
  LayoutWish layouts(const Graph&, const Node& node) const override {
    LayoutWish wish;
    wish.operands.assign(node.operands.size(), Layout{});
    wish.results.assign(node.types.size(), Layout{});
    return wish;
  }
  std::unique_ptr<Kernel> build(const KernelRequest& request) const override {
    return std::make_unique<RefKernel>(request);
  }
};

}  // namespace

std::unique_ptr<Provider> make_provider() { return std::make_unique<RefProvider>(); }

Target make_target() {
  Target target;
  target.name = "ref";
  target.fast_bf16 = true;  // so that it judges the others' bf16
  target.providers.push_back(make_provider());
  return target;
}

}  // namespace ref

MILLRACE_TARGET(ref){"ref", "every operator computed plainly: the judge of all other kernels",
                     []() -> const Target& {
                       static const Target& target = *new Target(ref::make_target());
                       return target;
                     }};

}  // namespace millrace

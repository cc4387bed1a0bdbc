#include "target/provider.h"

#include <algorithm>

#include <millrace/operator.h>

namespace millrace {
namespace cpu {

#include "generated/providers.inc"

Registry<ProviderKind>& providers() {
  static Registry<ProviderKind> all("provider", {MILLRACE_FOUND_PROVIDERS});
  return all;
}

}  // namespace cpu

const ProviderKind& register_provider(const ProviderKind& kind) {
  return cpu::providers().add(kind, {{"make", kind.make}});
}

std::vector<int64_t> strides_of(const Shape& shape, const Layout& layout) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (int k = shape.rank() - 1; k >= 0; --k) {
    const int d = layout.empty() ? k : layout[k];
    strides[d] = stride;
    stride *= shape[d].size();
  }
  return strides;
}

const Provider* Target::taker(const Graph& graph, const Node& node) const {
  for (const auto& provider : providers)
    if (!provider->why_not(graph, node)) return provider.get();
  return nullptr;
}

void ChunkedKernel::run(void* const* operands, void* const* results, void* scratch, DeviceContext device) {
  for (int stage = 0; stage < stages(); ++stage)
    device.threads().parallel(chunks(stage),
                              [&](int64_t chunk) { run_chunk(stage, chunk, operands, results, scratch); });
}

LayoutWish Provider::layouts(const Graph& /*graph*/, const Node& node) const {
  LayoutWish wish;
  wish.operands.assign(node.operands.size(), Layout{});
  wish.results.assign(node.types.size(), Layout{});
  return wish;
}

namespace {

class KernelsProvider final : public OperatorProvider {
 public:
  using WhyNot = std::optional<std::string> (*)(const Graph& graph, const Node& node);
  KernelsProvider(const std::vector<std::pair<std::string_view, Build>>& kernels, WhyNot declines)
      : OperatorProvider("only " + std::string(kernels[0].first), kernels), declines_(declines) {}
  std::string name() const override { return "kernels"; }

 private:
  std::optional<std::string> why_not_this(const Graph& graph, const Node& node) const override {
    return declines_ ? declines_(graph, node) : std::nullopt;
  }
  WhyNot declines_;
};

}  // namespace

std::unique_ptr<Provider> kernels_of(
    const std::vector<std::pair<std::string_view, OperatorProvider::Build>>& kernels,
    std::optional<std::string> (*why_not)(const Graph& graph, const Node& node)) {
  return std::make_unique<KernelsProvider>(kernels, why_not);
}

OperatorProvider::OperatorProvider(std::string others,
                                   std::vector<std::pair<std::string_view, Build>> kernels)
    : others_(std::move(others)) {
  for (const auto& [name, build] : kernels) kernels_.emplace_back(&get_operator(name), build);
}

OperatorProvider::Build OperatorProvider::find(const Operator* op) const {
  const auto it =
      std::find_if(kernels_.begin(), kernels_.end(), [&](const auto& k) { return k.first == op; });
  return it == kernels_.end() ? nullptr : it->second;
}

std::optional<std::string> OperatorProvider::why_not(const Graph& graph, const Node& node) const {
  if (!find(node.op)) return others_;
  return why_not_this(graph, node);
}

std::unique_ptr<Kernel> OperatorProvider::build(const KernelRequest& request) const {
  return find(request.node.op)(request);
}

}  // namespace millrace

#include "support/codegen_support.h"

#include <cstdlib>

#include <millrace/operator.h>
#include <millrace/random.h>

#include "backend/cpu/codegen/codegen_provider.h"

namespace millrace {
namespace {

/// Copies every element from row-major to a layout, or back.
Array relaid(const Array& from, const Layout& layout, bool back) {
  const int rank = from.shape().rank();
  const std::vector<int64_t> sizes = from.shape().sizes(), plain = strides_of(from.shape(), {}),
                             placed = strides_of(from.shape(), layout);
  Array to(from.type());
  const size_t bytes = static_cast<size_t>(from.dtype().bytes());
  for (int64_t i = 0; i < from.count(); ++i) {
    int64_t at = 0;
    for (int d = 0; d < rank; ++d) at += i / plain[d] % sizes[d] * placed[d];
    const int64_t source = back ? at : i, target = back ? i : at;
    std::memcpy(static_cast<char*>(to.data()) + target * bytes,
                static_cast<const char*>(from.data()) + source * bytes, bytes);
  }
  return to;
}

}  // namespace

Array to_layout(const Array& values, const Layout& layout) {
  return layout.empty() ? values : relaid(values, layout, false);
}
Array from_layout(const Array& stored, const Layout& layout) {
  return layout.empty() ? stored : relaid(stored, layout, true);
}

namespace {

std::unique_ptr<Kernel> build(const Graph& graph, const Node& node, const CodegenRun& options) {
  KernelRequest request{graph, node, options.operand_layouts, options.result_layouts};
  request.operand_layouts.resize(node.operands.size());
  request.result_layouts.resize(node.types.size());
  const auto provider = make_codegen_provider();
  if (const auto why = provider->why_not(graph, node)) throw std::runtime_error(*why);
  return provider->build(request);
}

}  // namespace

std::unique_ptr<Kernel> build_lone(const Graph& graph, const CodegenRun& options) {
  return build(graph, graph.node(graph.outputs()[0]), options);
}

std::unique_ptr<Kernel> build_fused(const Graph& body, const CodegenRun& options) {
  Graph graph;
  std::vector<Value> operands;
  for (const Value& input : body.inputs()) operands.push_back(graph.input("x", body.type(input)));
  const Value fused = graph.add_with_body(get_operator("fused"), operands, {}, std::make_shared<Graph>(body));
  return build(graph, graph.node(fused), options);
}

std::vector<Array> run_kernel(Kernel& kernel, const Graph& body, std::span<const Array> inputs,
                              const CodegenRun& options) {
  const auto layout = [](const std::vector<Layout>& layouts, size_t i) {
    return i < layouts.size() ? layouts[i] : Layout{};
  };
  std::vector<Array> stored, results;
  std::vector<void*> operands, outputs;
  for (size_t i = 0; i < inputs.size(); ++i)
    stored.push_back(to_layout(inputs[i], layout(options.operand_layouts, i)));
  for (Array& array : stored) operands.push_back(array.data());
  for (const Value& output : body.outputs()) results.emplace_back(body.type(output));
  for (Array& array : results) outputs.push_back(array.data());
  std::unique_ptr<void, decltype(&std::free)> scratch(
      std::aligned_alloc(64, (kernel.scratch_bytes() + 127) / 64 * 64), &std::free);
  ThreadPool pool(options.threads);
  kernel.run(operands.data(), outputs.data(), scratch.get(), pool);
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = from_layout(results[i], layout(options.result_layouts, i));
  return results;
}

std::vector<Array> run_fused(const Graph& body, std::span<const Array> inputs, const CodegenRun& options) {
  return run_kernel(*build_fused(body, options), body, inputs, options);
}

Array random_array(const Type& type, uint64_t seed, double low, double high) {
  RandomStream random(seed, 7);
  Array array(type);
  for (int64_t i = 0; i < array.count(); ++i) {
    if (type.dtype.is_float())
      array.set(i, low + (high - low) * random.uniform());
    else
      array.set(i, random.below(type.dtype.is_bool() ? 2 : 6));
  }
  return array;
}

}  // namespace millrace

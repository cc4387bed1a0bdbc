// Layer normalisation in one pass against the reference back end.
#include "backend/cpu/kernels/layer_norm.h"

#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>

#include <millrace/program.h>
#include <millrace/random.h>

#include "backend/ref/evaluate.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

Array random_array(const Type& type, uint64_t stream, double middle = 0) {
  Array array(type);
  RandomStream random(5, stream);
  for (float& value : array.as<float>()) value = static_cast<float>(middle + 2 * random.uniform() - 1);
  return array;
}

/// layer_norm and layer_norm_grad of x [rows, width] with weight and bias.
Graph norm_graph(int64_t rows, int64_t width) {
  Graph graph;
  const Value x = graph.input("x", {f32, {rows, width}}), w = graph.input("w", {f32, {width}}),
              b = graph.input("b", {f32, {width}}), g = graph.input("g", {f32, {rows, width}});
  const Value y = graph.add("layer_norm", {x, w, b});
  const Value d = graph.add("layer_norm_grad", {x, g, w}, {{"bias", true}});
  graph.set_outputs({y, d, {d.node, 1}, {d.node, 2}});
  return graph;
}

}  // namespace

TEST_CASE("layer normalisation in one pass gives what the reference gives, with every CPU's arithmetic") {
  for (const auto& [rows, width] :
       {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {5, 16}, {700, 33}, {4000, 48}, {2, 100003}}) {
    CAPTURE(rows);
    CAPTURE(width);
    const Graph graph = norm_graph(rows, width);
    std::vector<Array> inputs;
    // Far from zero, so that a variance from the mean of squares would show.
    for (const Value& input : graph.inputs())
      inputs.push_back(random_array(graph.type(input), inputs.size(), inputs.empty() ? 30 : 0));
    const std::vector<Array> expected = ref::evaluate(graph, inputs);
    for (const cpu::NormMath* math : cpu::norm_maths()) {
      INFO(math->name);
      size_t at = 0;
      for (const int output : {0, 1}) {
        const Node& node = graph.node(graph.outputs()[output]);
        const KernelRequest request{graph, node, std::vector<Layout>(node.operands.size()),
                                    std::vector<Layout>(node.types.size())};
        const auto kernel = cpu::make_layer_norm(request, *math);
        std::vector<Array> results;
        std::vector<void*> from, to;
        for (const Value& operand : node.operands) from.push_back(inputs[operand.node].data());
        for (const Type& type : node.types) to.push_back(results.emplace_back(type).data());
        Array scratch(Type{f32, {kernel->scratch_bytes() / 4 + 16}});
        kernel->run(from.data(), to.data(), scratch.data(), ThreadPool::global());
        for (const Array& result : results) CHECK(test::difference(result, expected[at++]) < 5e-4);
      }
    }
  }
}

TEST_CASE("what is fetched ahead and stored past the caches is the same") {
  constexpr int64_t rows = 7, width = 48;
  const Type block{f32, {rows, width}};
  const Array x = random_array({f32, {rows, width}}, 1), g = random_array({f32, {rows, width}}, 2),
              w = random_array({f32, {width}}, 3);
  const auto at = [](const Array& array) { return static_cast<const float*>(array.data()); };
  for (const cpu::NormMath* math : cpu::norm_maths()) {
    INFO(math->name);
    std::vector<Array> found;
    for (const cpu::NormLoops& loops : {math->near, math->far}) {
      Array y(block), dx(block), dw = Array::full(f32, {width}, 0), db = Array::full(f32, {width}, 0);
      REQUIRE(reinterpret_cast<uintptr_t>(y.data()) % 64 == 0);
      loops.forward(at(x), at(w), at(w), y.as<float>().data(), rows, width, 1e-5F);
      loops.backward(at(x), at(g), at(w), dx.as<float>().data(), dw.as<float>().data(), db.as<float>().data(),
                     rows, width, 1e-5F);
      for (Array* result : {&y, &dx, &dw, &db}) found.push_back(*result);
    }
    // But for products and sums that the compiler may round once or twice (with sanitizers it does so
    // differently).
    for (size_t k = 0; k < 4; ++k) CHECK(test::difference(found[k], found[4 + k]) < 2e-7);
  }
}

TEST_CASE(
    "layer normalisation and its gradient are one launch each, and the same for any number of threads") {
  const Graph graph = norm_graph(3000, 130);
  std::vector<std::vector<Array>> found;
  const int before = ThreadPool::global().threads();
  for (const int threads : {1, 3}) {
    ThreadPool::set_default_threads(threads);
    Program program = Program::compile(graph);
    const std::string text = program.explain();
    CHECK(std::count(text.begin(), text.end(), '\n') == 2);
    CHECK(text.find("kernels: layer_norm ") != std::string::npos);
    CHECK(text.find("kernels: layer_norm_grad ") != std::string::npos);
    std::vector<Array> inputs;
    for (int i = 0; i < program.input_count(); ++i)
      inputs.push_back(random_array(program.input(i).type(), static_cast<uint64_t>(i)));
    found.push_back(test::run(program, inputs));
  }
  ThreadPool::set_default_threads(before);
  for (size_t o = 0; o < found[0].size(); ++o)
    CHECK(std::memcmp(found[0][o].data(), found[1][o].data(), static_cast<size_t>(found[0][o].bytes())) == 0);
}

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <vector>

#include <millrace/program.h>
#include <millrace/random.h>

#include "autodiff/gradient.h"
#include "backend/ref/evaluate.h"
#include "base/thread_pool.h"
#include "ops/build.h"
#include "support/graphs.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

using Ints = std::vector<int64_t>;

struct Case {
  int64_t images, in, size, out, kernel, stride;
  std::string precision = "fp32";
};

Value convolve(ops::Build& b, Value x, const Case& c, const std::string& name) {
  const Value w = b.graph().input(name, {f32, {c.out, b.shape(x)[1].size(), c.kernel, c.kernel}});
  const int64_t pad = c.kernel / 2;
  return b.graph().add("conv2d", {x, w},
                       {{"strides", Ints{c.stride, c.stride}}, {"pads", Ints{pad, pad, pad, pad}}});
}

/// Compares with the reference, on several threads, whoever computes the convolutions; returns the fewest
/// links of chains.
int check(const Graph& graph, const std::string& precision) {
  const std::vector<Array> inputs = test::inputs_for(graph), expected = ref::evaluate(graph, inputs);
  CompileOptions options;
  options.precision = precision;
  const Program timed = Program::compile(graph, options);
  // Not with what was measured: others on the machine decide that, too.
  int least = std::numeric_limits<int>::max();
  for (const std::string provider : {"winograd", "gemm", "onednn"}) {
    CAPTURE(provider);
    for (const auto& [key, choice] : timed.choices())
      options.choices[key] = key.starts_with("bf16 or f32") ? "bf16" : provider;
    std::vector<Array> first;
    for (const int threads : {1, 2, 5}) {
      ThreadPool::set_default_threads(threads);
      Program program = Program::compile(graph, options);
      least = std::min(least, test::links(program));
      test::run(program, inputs);
      const std::vector<Array> found = test::run(program, inputs);
      if (threads == 1) first = found;
      for (size_t o = 0; o < expected.size(); ++o) {
        CAPTURE(o);
        CHECK(test::difference(found[o], first[o]) == 0);
        if (threads > 1) continue;
        double largest = 0, worst = 0;
        for (int64_t i = 0; i < expected[o].count(); ++i) {
          largest = std::max(largest, std::abs(expected[o].at(i)));
          const double off = std::abs(found[o].at(i) - expected[o].at(i));
          worst = std::max(worst, std::isfinite(off) ? off : HUGE_VAL);
        }
        CHECK(worst <= (precision == "fp32" ? 1e-3 : 5e-2) * (1 + largest));
      }
    }
  }
  ThreadPool::set_default_threads(0);
  return least;
}

/// Packed products, and which of them follow another launch row by row.
struct Following {
  int products = 0, products_after_products = 0, products_after_depthwise = 0;
};
Following following_of(const Program& program) {
  Following found;
  std::string before;
  for (const LaunchInfo& launch : program.launches()) {
    if (launch.provider == "gemm") {
      const bool follows = launch.kernel.find("row by row") != std::string::npos;
      ++found.products;
      found.products_after_products += follows && before == "gemm";
      found.products_after_depthwise += follows && before == "depthwise";
    }
    before = launch.provider;
  }
  return found;
}

}  // namespace

TEST_CASE("bias, residual sum and activation follow a convolution row by row") {
  for (const Case& c : {Case{8, 64, 32, 64, 3, 1}, Case{8, 48, 18, 64, 3, 1}, Case{6, 64, 28, 96, 1, 1},
                        Case{9, 16, 31, 40, 3, 2}, Case{3, 33, 30, 65, 3, 1}, Case{16, 64, 14, 64, 3, 1},
                        Case{16, 96, 7, 96, 3, 1}, Case{8, 64, 32, 64, 3, 1, "bf16"},
                        Case{8, 64, 20, 64, 1, 1, "bf16"}, Case{5, 32, 19, 64, 3, 1, "bf16"}}) {
    if (test::precisions_here({c.precision}).empty()) continue;
    CAPTURE(c.images);
    CAPTURE(c.size);
    CAPTURE(c.precision);
    Graph graph;
    ops::Build b(graph);
    const Value x = graph.input("x", {f32, {c.images, c.in, c.size, c.size}});
    const Value bias = graph.input("bias", {f32, {1, c.out, 1, 1}});
    const Value y = convolve(b, x, c, "w");
    const Value residual = graph.input("residual", {f32, Shape(b.shape(y))});
    graph.set_outputs({graph.add("relu", {b.add(b.add(y, bias), residual)})});
    CHECK(check(graph, c.precision) >= (c.images >= 8 && c.size == 32 ? 1 : 0));
  }
}

TEST_CASE(
    "the statistics of a batch norm, and its gradient's sums, follow their convolutions picture by picture") {
  for (const Case& c :
       {Case{16, 32, 20, 64, 3, 1}, Case{16, 40, 13, 64, 3, 1}, Case{17, 64, 12, 64, 1, 1},
        Case{16, 64, 12, 64, 3, 1, "bf16"}, Case{2, 32, 12, 32, 3, 1}, Case{5, 32, 3, 32, 3, 1}}) {
    if (test::precisions_here({c.precision}).empty()) continue;
    CAPTURE(c.size);
    CAPTURE(c.precision);
    Graph graph;
    ops::Build b(graph);
    const Value x = graph.input("x", {f32, {c.images, c.in, c.size, c.size}});
    const Value weight = graph.input("weight", {f32, {c.out}}), bias = graph.input("bias", {f32, {c.out}});
    const auto block = [&](Value from, const std::string& name) {
      const Value y = convolve(b, from, c, name);
      return graph.add("relu", {graph.add("batch_norm", {y, weight, bias}, {{"eps", 1e-3}})});
    };
    const Value y = block(block(x, "w"), "v");
    const Value loss = b.mean(b.mul(y, y), {0, 1, 2, 3}, false);
    const std::vector<Value> wanted = graph.inputs();
    std::vector<Value> outputs = gradients(graph, loss, wanted);
    outputs.push_back(loss);
    graph.set_outputs(outputs);
    CHECK(check(graph, c.precision) >= (c.images == 16 ? 4 : 0));
  }
}

TEST_CASE("a 1×1 convolution follows a depthwise one row by row, and two products do not follow each other") {
  for (const std::string& precision : test::precisions_here({"fp32", "bf16"}))
    for (const int64_t images : {1, 3})
      for (const int64_t stride : {1, 2}) {
        CAPTURE(precision);
        CAPTURE(images);
        CAPTURE(stride);
        Graph graph;
        ops::Build b(graph);
        const auto weights = [&](const Shape& shape) {
          Array w(Type{f32, shape});
          RandomStream random(7, static_cast<uint64_t>(shape.count()));
          for (int64_t i = 0; i < w.count(); ++i) w.set(i, (random.uniform() * 2 - 1) / 8);
          return graph.constant(w);
        };
        const auto relu6 = [&](Value y, int64_t channels) {
          return graph.add("clamp", {b.add(y, weights({channels, 1, 1}))}, {{"low", 0.0}, {"high", 6.0}});
        };
        const Value x = graph.input("x", {f32, {images, 24, 56, 56}});
        Value y = relu6(graph.add("conv2d", {x, weights({96, 24, 1, 1})}), 96);
        y = relu6(
            graph.add(
                "conv2d", {y, weights({96, 1, 3, 3})},
                {{"strides", Ints{stride, stride}}, {"pads", Ints{1, 1, 1, 1}}, {"groups", int64_t{96}}}),
            96);
        y = b.add(graph.add("conv2d", {y, weights({24, 96, 1, 1})}), weights({24, 1, 1}));
        if (stride == 1) y = b.add(y, x);
        y = relu6(graph.add("conv2d", {y, weights({80, 24, 1, 1})}), 80);
        graph.set_outputs({y});
        const std::vector<Array> inputs = test::inputs_for(graph), expected = ref::evaluate(graph, inputs);
        CompileOptions options;
        options.precision = precision;
        const Program timed = Program::compile(graph, options);
        for (const auto& [key, choice] : timed.choices())
          options.choices[key] = key.starts_with("bf16 or f32")                   ? "bf16"
                                 : key.find("[96, 1, 3, 3]") != std::string::npos ? "depthwise"
                                                                                  : "gemm";
        std::vector<Array> results;
        for (const int threads : {1, 2, 5}) {
          ThreadPool::set_default_threads(threads);
          Program program = Program::compile(graph, options);
          const Following found = following_of(program);
          CHECK(found.products_after_products == 0);
          if (found.products > 0) CHECK(found.products_after_depthwise == 1);
          test::run(program, inputs);
          results.push_back(test::run(program, inputs)[0]);
          CHECK(results.back().identical(results[0]));
        }
        ThreadPool::set_default_threads(0);
        CHECK(test::difference(results[0], expected[0]) < (precision == "fp32" ? 1e-4 : 5e-2));
      }
}

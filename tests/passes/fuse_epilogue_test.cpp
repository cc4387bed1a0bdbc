#include <bit>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <limits>
#include <optional>

#include <millrace/operator.h>
#include <millrace/program.h>

#include "backend/cpu/kernels/epilogue_math.h"
#include "backend/cpu/kernels/gemm/kernels.h"
#include "backend/cpu/kernels/vectors.h"
#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "support/graphs.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

Array epilogue_numbers(const Shape& shape, uint64_t stream) { return test::values_for({f32, shape}, stream); }

/// A convolution and what follows it.
struct Layer {
  Shape x, w;
  int64_t stride = 1, pad = 0, groups = 1;
  bool residual = false, subtracts = false;
  std::string end = "relu";  // or "relu6", or empty
};

Graph layer_graph(const Layer& l) {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, l.x});
  Value y = graph.add("conv2d", {x, graph.constant(epilogue_numbers(l.w, 2))},
                      {{"strides", std::vector<int64_t>{l.stride, l.stride}},
                       {"pads", std::vector<int64_t>(4, l.pad)},
                       {"groups", l.groups}});
  y = b.add(y, graph.constant(epilogue_numbers({l.w[0], 1, 1}, 4)));
  if (l.subtracts) y = b.sub(y, graph.constant(epilogue_numbers({l.w[0], 1, 1}, 5)));
  if (l.residual) y = b.add(y, graph.input("r", {f32, b.shape(y)}));
  if (l.end == "relu") y = b.unary("relu", y);
  if (l.end == "relu6") y = graph.add("clamp", {y}, {{"low", 0.0}, {"high", 6.0}});
  graph.set_outputs({y});
  return graph;
}

double largest_of(const Array& array) {
  double largest = 0;
  for (int64_t i = 0; i < array.count(); ++i) largest = std::max(largest, std::abs(array.at(i)));
  return largest;
}

const LaunchInfo* fused_launch(const std::vector<LaunchInfo>& launches) {
  for (const LaunchInfo& launch : launches)
    if (launch.operation == "fused_conv2d") return &launch;
  return nullptr;
}

/// Compiles with the provider, if it takes the layer; which one it was.
std::string with_provider(const Graph& graph, const std::string& provider, const std::string& precision,
                          std::optional<Program>& program) {
  program = Program::compile(graph, {.precision = precision});
  std::map<std::string, std::string> choices = program->choices();
  for (auto& [problem, choice] : choices)
    if (problem.starts_with("fused_conv2d")) choice = provider;
  program = Program::compile(graph, {.precision = precision, .choices = choices});
  const std::vector<LaunchInfo> launches = program->launches();
  const LaunchInfo* launch = fused_launch(launches);
  return launch ? launch->provider : "";
}

}  // namespace

TEST_CASE("bias, residual and limits behind a convolution of constant weights are one node with it") {
  const Layer layers[] = {
      {.x = {2, 32, 20, 20}, .w = {48, 32, 3, 3}, .pad = 1, .residual = true},
      {.x = {1, 40, 13, 11}, .w = {72, 40, 1, 1}, .residual = true, .end = "relu6"},
      {.x = {1, 64, 7, 7}, .w = {256, 64, 1, 1}, .residual = true, .end = ""},
      {.x = {1, 64, 28, 28}, .w = {128, 64, 3, 3}, .stride = 2, .pad = 1},
      {.x = {3, 48, 9, 9}, .w = {48, 1, 3, 3}, .pad = 1, .groups = 48, .end = "relu6"},
      {.x = {1, 35, 8, 9}, .w = {35, 1, 3, 3}, .stride = 2, .pad = 1, .groups = 35},
      {.x = {3, 16, 32, 33}, .w = {104, 16, 1, 1}, .residual = true},
      {.x = {1, 6, 5, 5}, .w = {6, 3, 3, 3}, .groups = 2, .residual = true},
      {.x = {1, 3, 17, 17}, .w = {20, 3, 5, 5}, .stride = 2, .pad = 2, .subtracts = true, .end = ""},
  };
  std::map<std::string, int> tried;
  for (const Layer& layer : layers)
    for (const std::string& precision : test::precisions_here({"fp32", "bf16"})) {
      CAPTURE(layer.x.str());
      CAPTURE(precision);
      const Graph graph = layer_graph(layer);
      const std::vector<Array> inputs = test::inputs_for(graph);
      const Array expected = ref::evaluate(graph, inputs)[0];
      for (const std::string provider : {"winograd", "gemm", "gemm by tiles", "depthwise", "onednn"}) {
        const bool tiles = provider == "gemm by tiles";
        if (tiles && (precision != "bf16" || !cpu::has_avx512_bf16())) continue;
        if (tiles) cpu::gemm::set_product_arithmetic(&cpu::gemm::arithmetic_bf16_tiles());
        std::optional<Program> program;
        const std::string used = with_provider(graph, tiles ? "gemm" : provider, precision, program);
        cpu::gemm::set_product_arithmetic(nullptr);
        CAPTURE(used);
        REQUIRE(used != "");
        ++tried[used];
        const double bound = precision == "fp32" ? 1e-4 : 2e-2;
        CHECK(test::difference(test::run(*program, inputs)[0], expected) < bound * largest_of(expected));
      }
    }
  for (const char* provider : {"depthwise", "onednn"}) CHECK(tried[provider] > 0);
  if (cpu::has_avx512()) CHECK(tried["gemm"] > 0);
}

TEST_CASE("a convolution that is fused gives what it gives with the pass off") {
  const Graph graph = layer_graph({.x = {2, 24, 14, 14}, .w = {40, 24, 1, 1}, .residual = true});
  const std::vector<Array> inputs = test::inputs_for(graph);
  Program fused = Program::compile(graph);
  CHECK(fused_launch(fused.launches()) != nullptr);
  const Array one = test::run(fused, inputs)[0];
  setenv("MILLRACE_DISABLE", "fuse-epilogue", 1);
  Program apart = Program::compile(graph);
  unsetenv("MILLRACE_DISABLE");
  CHECK(fused_launch(apart.launches()) == nullptr);
  CHECK(test::difference(test::run(apart, inputs)[0], one) < 1e-5 * largest_of(one));
}

TEST_CASE("NaN goes through fused limits, as it does through a ReLU") {
  for (const std::string provider : {"gemm", "onednn"}) {
    const Graph graph = layer_graph({.x = {1, 32, 28, 28}, .w = {128, 32, 1, 1}, .end = "relu6"});
    std::vector<Array> inputs = test::inputs_for(graph);
    inputs[0].set(0, std::numeric_limits<double>::quiet_NaN());
    std::optional<Program> program;
    const std::string used = with_provider(graph, provider, "fp32", program);
    if (provider == "onednn" || cpu::has_avx512()) CHECK(used == provider);
    const Array y = test::run(*program, inputs)[0];
    CHECK(std::isnan(y.at(0)));
    CHECK(!std::isnan(y.at(1)));
  }
}

TEST_CASE("what others read of a convolution stays, and of two that are added the later takes the sum") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {1, 8, 6, 6}});
  const auto conv = [&](Value of, uint64_t seed) {
    const Value y = graph.add("conv2d", {of, graph.constant(epilogue_numbers({8, 8, 1, 1}, seed))});
    return b.add(y, graph.constant(epilogue_numbers({8, 1, 1}, seed + 50)));
  };
  const Value read_twice = conv(x, 1), shortcut = conv(read_twice, 2), main = conv(read_twice, 3);
  graph.set_outputs({b.unary("relu", b.add(main, shortcut)), b.unary("relu", read_twice)});
  Program program = Program::compile(graph);
  int fused = 0;
  for (const LaunchInfo& launch : program.launches()) {
    fused += launch.operation == "fused_conv2d";
    CHECK(launch.operation != "conv2d");  // none is computed twice
  }
  CHECK(fused == 3);
  const Array input = epilogue_numbers({1, 8, 6, 6}, 9);
  CHECK(test::difference(test::run(program, {input}), ref::evaluate(graph, std::span(&input, 1))) < 1e-5);
}

TEST_CASE("a convolution that is a result, or that is added to itself, stays") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {1, 8, 6, 6}});
  const auto conv = [&](uint64_t seed) {
    return graph.add("conv2d", {x, graph.constant(epilogue_numbers({8, 8, 1, 1}, seed))});
  };
  const Value result = conv(1), twice = conv(2);
  graph.set_outputs({result, b.unary("relu", result), b.add(twice, twice)});
  Program program = Program::compile(graph);
  const Array input = epilogue_numbers({1, 8, 6, 6}, 9);
  CHECK(test::difference(test::run(program, {input}), ref::evaluate(graph, std::span(&input, 1))) < 1e-5);
}

TEST_CASE("every form of the epilogue's arithmetic gives the same bits") {
  for (const int64_t count : {1, 3, 16, 37, 64}) {
    std::vector<float> sums(static_cast<size_t>(count)), bias(sums), added(sums);
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i] = std::sin(static_cast<float>(i)) * 4;
      bias[i] = std::cos(static_cast<float>(3 * i));
      added[i] = static_cast<float>(i % 5) - 2;
    }
    sums[0] = std::numeric_limits<float>::quiet_NaN();
    std::vector<uint16_t> halves(sums.size());
    for (size_t i = 0; i < sums.size(); ++i)
      halves[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(added[i]) >> 16);
    for (const cpu::EpilogueMath* math : cpu::epilogue_maths())
      for (const bool residual : {false, true}) {
        std::vector<float> wide(sums.size() + 1, 77);
        std::vector<uint16_t> narrow(sums.size() + 1, 77);
        math->f32(sums.data(), bias.data(), residual ? added.data() : nullptr, wide.data(), count, -1, 3);
        math->bf16(sums.data(), bias.data(), residual ? halves.data() : nullptr, narrow.data(), count, -1, 3);
        for (size_t i = 0; i < sums.size(); ++i) {
          const float plain = sums[i] + bias[i] + (residual ? added[i] : 0);
          const float expected = plain < -1 ? -1 : plain > 3 ? 3 : plain;
          if (std::isnan(expected)) {
            CHECK(std::isnan(wide[i]));
            CHECK((narrow[i] & 0x7FFF) > 0x7F80);
            continue;
          }
          CHECK(wide[i] == expected);
          const auto bits = std::bit_cast<uint32_t>(expected);
          CHECK(narrow[i] == static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16));
        }
        CHECK(wide.back() == 77);
        CHECK(narrow.back() == 77);
      }
  }
}

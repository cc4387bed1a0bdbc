#include <cmath>
#include <doctest/doctest.h>
#include <functional>

#include <millrace/operator.h>

#include "backend/cpu/kernels/gemm/kernels.h"
#include "backend/cpu/kernels/vectors.h"
#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "support/codegen_support.h"
#include "target/provider.h"

using namespace millrace;

namespace {

using FewInts = std::vector<int64_t>;

struct FewCase {
  int64_t images, channels, height, width, out, kernel_height, kernel_width;
  FewInts strides = {1, 1}, pads = {0, 0, 0, 0};
  bool fused = false;
};

const std::vector<FewCase>& few_cases() {
  static const std::vector<FewCase> all = {
      {2, 3, 32, 32, 32, 3, 3, {2, 2}, {1, 1, 1, 1}, true},   {1, 3, 37, 41, 24, 3, 3, {1, 1}, {1, 1, 1, 1}},
      {1, 1, 28, 28, 16, 5, 5, {1, 1}, {2, 2, 2, 2}, true},   {3, 2, 19, 33, 40, 3, 3, {2, 1}, {0, 2, 1, 0}},
      {1, 4, 20, 45, 33, 3, 5, {1, 3}, {2, 1, 0, 3}, true},   {1, 3, 9, 70, 64, 3, 3, {3, 2}, {4, 5, 3, 6}},
      {1, 3, 224, 224, 32, 3, 3, {2, 2}, {0, 0, 1, 1}, true}, {2, 3, 16, 16, 17, 2, 3, {1, 1}, {0, 0, 0, 0}},
      {1, 3, 40, 50, 64, 7, 7, {2, 2}, {3, 3, 3, 3}, true}};
  return all;
}

struct FewMade {
  Graph graph;
  Value node;
};

FewMade make_few(const FewCase& c, DType dtype) {
  FewMade made;
  const Value x = made.graph.input("x", {dtype, {c.images, c.channels, c.height, c.width}});
  std::vector<Value> operands{
      x, made.graph.constant(
             random_array({dtype, {c.out, c.channels, c.kernel_height, c.kernel_width}}, 5, -1, 1))};
  Attributes attributes{{"strides", c.strides}, {"pads", c.pads}};
  if (c.fused) {
    operands.push_back(made.graph.constant(random_array({f32, {c.out}}, 6, -1, 1)));
    attributes.set("low", -0.5);
    attributes.set("high", 1.5);
  }
  made.node = made.graph.add(c.fused ? "fused_conv2d" : "conv2d", operands, attributes);
  made.graph.set_outputs({made.node});
  return made;
}

/// Scratch and result begin as NaN: nothing may be read that was not written.
Array run_few(const FewMade& made, const Array& x, int threads) {
  const auto provider = cpu::providers().at("few-channels").make();
  const Node& node = made.graph.node(made.node);
  REQUIRE(!provider->why_not(made.graph, node));
  const LayoutWish wish = provider->layouts(made.graph, node);
  KernelRequest request{made.graph, node, {}, {*wish.results[0]}};
  for (const auto& layout : wish.operands) request.operand_layouts.push_back(*layout);
  const auto kernel = provider->build(request);
  Array stored = to_layout(x, *wish.operands[0]), result(node.types[0]),
        scratch = Array::full(u8, Shape(FewInts{kernel->scratch_bytes()}), 255);
  for (int64_t i = 0; i < result.count(); ++i) result.set(i, NAN);
  std::vector<Array> constants;
  for (size_t k = 1; k < node.operands.size(); ++k)
    constants.push_back(made.graph.constant_value(node.operands[k])->clone());
  void* operands[] = {stored.data(), constants[0].data(),
                      constants.size() > 1 ? constants[1].data() : nullptr};
  void* results[] = {result.data()};
  ThreadPool pool(threads);
  for (int repeat = 0; repeat < 2; ++repeat) kernel->run(operands, results, scratch.data(), pool);
  return from_layout(result, *wish.results[0]);
}

/// Panels of AVX2 are half as wide, so that sums may be twice as long.
bool too_long(const FewCase& c, DType dtype) {
  return c.kernel_width == 7 && dtype == f32 && cpu::gemm::product_arithmetic(f32).panel == 32;
}

/// With what this CPU multiplies by, and in f32 with the arithmetic of AVX2 too.
void with_each_arithmetic(const std::function<void(DType)>& check) {
  if (cpu::has_avx512() || cpu::has_avx2()) check(f32);
  if (cpu::has_avx512_bf16()) check(bf16);
  if (!cpu::has_avx512() || !cpu::has_avx2()) return;
  cpu::gemm::set_product_arithmetic(&cpu::gemm::arithmetic_f32_avx2());
  check(f32);
  cpu::gemm::set_product_arithmetic(nullptr);
}

}  // namespace

TEST_CASE(
    "convolutions of few channels agree with the reference, and do not depend on the number of threads") {
  with_each_arithmetic([](DType dtype) {
    for (const FewCase& c : few_cases()) {
      if (too_long(c, dtype)) continue;
      CAPTURE(dtype.name());
      CAPTURE(fmt::format("{}×{}×{} to {}, {}×{}", c.channels, c.height, c.width, c.out, c.kernel_height,
                          c.kernel_width));
      const FewMade made = make_few(c, dtype);
      Array x = random_array({dtype, {c.images, c.channels, c.height, c.width}}, 3, -1, 1);
      const Array expected = ref::evaluate(made.graph, std::vector<Array>{x})[0],
                  result = run_few(made, x, 1);
      double worst = 0;
      for (int64_t i = 0; i < expected.count(); ++i) {
        REQUIRE(std::isfinite(result.at(i)));
        worst = std::max(worst, std::abs(result.at(i) - expected.at(i)) -
                                    (dtype == f32 ? 0 : 1.0 / 128) * std::abs(expected.at(i)));
      }
      CHECK(worst < 1e-4);
      for (const int threads : {2, 5}) CHECK(run_few(made, x, threads).identical(result));
    }
  });
}

TEST_CASE("an infinite pixel reaches only those results of a convolution of few channels that meet it") {
  with_each_arithmetic([](DType dtype) {
    const FewCase c{1, 3, 12, 30, 16, 3, 3, {2, 2}, {1, 1, 1, 1}};
    const FewMade made = make_few(c, dtype);
    Array x = random_array({dtype, {1, 3, 12, 30}}, 3, -1, 1);
    for (const int64_t pixel : {0, 29, 30 * 5 + 14, 30 * 12 + 7, 30 * 36 - 1}) x.set(pixel, INFINITY);
    const Array expected = ref::evaluate(made.graph, std::vector<Array>{x})[0], result = run_few(made, x, 1);
    int64_t differ = 0;
    for (int64_t i = 0; i < result.count(); ++i)
      differ += std::isfinite(result.at(i)) != std::isfinite(expected.at(i));
    CHECK(differ == 0);
  });
}

TEST_CASE("what the kernels for few channels do not take is said") {
  if (!cpu::has_avx512() && !cpu::has_avx2()) return;
  const auto provider = cpu::providers().at("few-channels").make();
  const auto reason = [&](const FewCase& c, DType dtype) {
    const FewMade made = make_few(c, dtype);
    return provider->why_not(made.graph, made.graph.node(made.node)).value_or("");
  };
  CHECK(reason({1, 3, 32, 32, 32, 3, 3}, f32).empty());
  CHECK(reason({1, 5, 32, 32, 32, 3, 3}, f32) == "more than 4 channels");
  CHECK(reason({1, 3, 32, 32, 8, 3, 3}, f32) == "too few results for blocks of 14×32");
  const FewCase seven{1, 3, 32, 32, 32, 7, 7};
  const std::string long_sums = "sums that are too long for the nearest cache";
  CHECK(reason({1, 3, 32, 32, 32, 9, 9}, f32) == long_sums);
  CHECK(reason(seven, f32) == (too_long(seven, f32) ? long_sums : ""));
  if (!cpu::has_avx512_bf16()) return;
  CHECK(reason({1, 3, 32, 32, 32, 3, 3}, f64) == "only f32 and bf16, not f64");
  CHECK(reason({1, 1, 32, 32, 32, 1, 3}, bf16) == "too short sums");
}

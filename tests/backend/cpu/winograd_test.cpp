#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <millrace/operator.h>
#include <millrace/random.h>

#include "backend/cpu/kernels/vectors.h"
#include "backend/cpu/kernels/winograd/arithmetic.h"
#include "backend/cpu/kernels/winograd/kernels.h"
#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "target/provider.h"

using namespace millrace;

namespace {

using Ints = std::vector<int64_t>;

struct Case {
  int64_t images, in, out, height, width, top, left, bottom, right, window = 3;
};

Array random_array(const Type& type, uint64_t stream) {
  Array array(type);
  RandomStream random(11, stream);
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, random.uniform() * 2 - 1);
  return array;
}

/// A row-major [N, C, H, W] array in channels-last order, or back.
Array reordered(const Array& array, bool to_channels_last) {
  const Ints s = array.shape().sizes();
  Array result(array.type());
  for (int64_t n = 0; n < s[0]; ++n)
    for (int64_t c = 0; c < s[1]; ++c)
      for (int64_t h = 0; h < s[2]; ++h)
        for (int64_t w = 0; w < s[3]; ++w) {
          const int64_t plain = ((n * s[1] + c) * s[2] + h) * s[3] + w,
                        last = ((n * s[2] + h) * s[3] + w) * s[1] + c;
          result.set(to_channels_last ? last : plain, array.at(to_channels_last ? plain : last));
        }
  return result;
}

/// What computes: the vectors of an instruction set.
struct Form {
  std::string name;
  DType dtype;
  const cpu::winograd::Arithmetic* f32 = nullptr;
};

/// Those that this CPU has.
std::vector<Form> forms(std::initializer_list<DType> dtypes) {
  std::vector<Form> all;
  const auto take = [&](bool can, const Form& form) {
    if (can) return all.push_back(form);
    MESSAGE("skipped: this CPU has no " << form.name);
  };
  for (const DType dtype : dtypes) {
    if (dtype == bf16) {
      take(cpu::has_avx512_bf16(), {"AVX-512 BF16", bf16});
      continue;
    }
    take(cpu::has_avx2(), {"AVX2", f32, &cpu::winograd::arithmetic_avx2()});
    take(cpu::has_avx512(), {"AVX-512", f32, &cpu::winograd::arithmetic_avx512()});
  }
  return all;
}

/// Kernels are built so while it lives.
class Computing {
 public:
  explicit Computing(const Form& form) { cpu::winograd::set_arithmetic_f32(form.f32); }
  ~Computing() { cpu::winograd::set_arithmetic_f32(nullptr); }
  Computing(const Computing&) = delete;
  Computing& operator=(const Computing&) = delete;
};

struct Made {
  Graph graph;
  Value node;
};

Made make(const std::string& op, const Case& c, DType dtype) {
  Made made;
  const int64_t less = c.window - 1;
  const Type x{dtype, {c.images, c.in, c.height, c.width}}, w{dtype, {c.out, c.in, c.window, c.window}},
      y{dtype, {c.images, c.out, c.height + c.top + c.bottom - less, c.width + c.left + c.right - less}};
  Attributes attributes{{"strides", Ints{1, 1}},
                        {"pads", Ints{c.top, c.left, c.bottom, c.right}},
                        {"dilations", Ints{1, 1}},
                        {"groups", int64_t{1}}};
  if (op == "conv2d_input_grad") attributes.set("input_shape", x.shape);
  if (op == "conv2d_weight_grad") attributes.set("weight_shape", w.shape);
  const Type &a = op == "conv2d_input_grad" ? y : x, &b = op == "conv2d_weight_grad" ? y : w;
  made.node = made.graph.add(op, {made.graph.input("a", a), made.graph.input("b", b)}, attributes);
  made.graph.set_outputs({made.node});
  return made;
}

Array run(const Made& made, const std::vector<Array>& values, int threads) {
  const auto provider = cpu::providers().at("winograd").make();
  const Node& node = made.graph.node(made.node);
  const LayoutWish wish = provider->layouts(made.graph, node);
  KernelRequest request{made.graph, node, {*wish.operands[0], *wish.operands[1]}, {*wish.results[0]}};
  const auto kernel = provider->build(request);
  Array a = wish.operands[0]->empty() ? values[0].clone() : reordered(values[0], true),
        b = wish.operands[1]->empty() ? values[1].clone() : reordered(values[1], true),
        result = Array::full(node.types[0].dtype, node.types[0].shape, 99),
        scratch = Array::full(u8, Shape(Ints{kernel->scratch_bytes()}), 255);
  void* operands[] = {a.data(), b.data()};
  void* results[] = {result.data()};
  ThreadPool pool(threads);
  for (int repeat = 0; repeat < 2; ++repeat) kernel->run(operands, results, scratch.data(), pool);
  return wish.results[0]->empty() ? result : reordered(result, false);
}

/// The largest difference from the reference on the same numbers in f32, as a part of the largest result.
double error_of(const std::string& op, const Case& c, DType dtype) {
  CAPTURE(fmt::format("{} {} {}→{} {}×{}", op, dtype.name(), c.in, c.out, c.height, c.width));
  const Made made = make(op, c, dtype), exact = make(op, c, f32);
  std::vector<Array> values, wide;
  for (const Value& operand : made.graph.node(made.node).operands) {
    values.push_back(random_array(made.graph.type(operand), 3 + values.size()));
    wide.emplace_back(Type{f32, values.back().shape()});
    for (int64_t i = 0; i < wide.back().count(); ++i) wide.back().set(i, values.back().at(i));
  }
  const Array expected = ref::evaluate(exact.graph, wide)[0], result = run(made, values, 1);
  double scale = 0, worst = 0;
  for (int64_t i = 0; i < expected.count(); ++i) {
    scale = std::max(scale, std::abs(expected.at(i)));
    worst = std::max(worst, std::isnan(result.at(i)) ? HUGE_VAL : std::abs(result.at(i) - expected.at(i)));
  }
  for (const int threads : {2, 5}) CHECK(run(made, values, threads).identical(result));
  return worst / scale;
}

/// A convolution with constant weights of such windows, bias, limits, and a residual where `residual`.
void check_ends(int64_t window, bool residual) {
  Graph graph;
  const Type y{f32, {2, 36, 11, 7}};
  const int64_t less = window - 1;
  std::vector<Array> given = {random_array({f32, {2, 24, 9 + less, 6 + less}}, 1)};
  std::vector<Value> operands = {graph.input("x", given[0].type()),
                                 graph.constant(random_array({f32, {36, 24, window, window}}, 2))};
  if (residual) {
    given.push_back(random_array(y, 3));
    operands.push_back(graph.input("added", y));
  }
  operands.push_back(graph.constant(random_array({f32, {36}}, 4)));
  Made made;
  made.node = graph.add("fused_conv2d", operands,
                        {{"strides", Ints{1, 1}}, {"pads", Ints{1, 0, 1, 1}}, {"low", -2.0}, {"high", 5.0}});
  graph.set_outputs({made.node});
  made.graph = std::move(graph);
  const Node& node = made.graph.node(made.node);
  const auto provider = cpu::providers().at("winograd").make();
  // With windows of 3×3 this is less work than the provider takes.
  if (window == 5) REQUIRE(!provider->why_not(made.graph, node));
  const LayoutWish wish = provider->layouts(made.graph, node);
  KernelRequest request{made.graph, node, {}, {*wish.results[0]}};
  for (const auto& layout : wish.operands) request.operand_layouts.push_back(*layout);
  const auto kernel = provider->build(request);
  std::vector<Array> stored;
  for (size_t k = 0, at = 0; k < node.operands.size(); ++k) {
    const Array* const constant = made.graph.constant_value(node.operands[k]);
    const Array value = constant ? constant->clone() : given[at++];
    stored.push_back(wish.operands[k]->empty() ? value : reordered(value, true));
  }
  std::vector<void*> pointers;
  for (Array& each : stored) pointers.push_back(each.data());
  Array result = Array::full(f32, y.shape, 99),
        scratch = Array::full(u8, Shape(Ints{kernel->scratch_bytes()}), 255);
  void* results[] = {result.data()};
  ThreadPool pool(3);
  kernel->run(pointers.data(), results, scratch.data(), pool);
  const Array expected = ref::evaluate(made.graph, given)[0], got = reordered(result, false);
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < expected.count(); ++i) {
    worst = std::max(worst, std::abs(got.at(i) - expected.at(i)));
    largest = std::max(largest, expected.at(i));
  }
  CHECK(largest == 5);
  CHECK(worst < 1.2e-4);  // of sums of 600 products, up to about 30
}

}  // namespace

TEST_CASE("Winograd convolutions agree with the reference, and do not depend on the number of threads") {
  const std::vector<Case> cases = {{2, 16, 16, 8, 8, 1, 1, 1, 1},   {3, 17, 33, 7, 9, 1, 1, 1, 1},
                                   {1, 64, 64, 13, 6, 0, 0, 0, 0},  {5, 40, 70, 4, 4, 1, 1, 1, 1},
                                   {1, 16, 20, 5, 3, 2, 2, 2, 2},   {4, 130, 70, 6, 5, 1, 0, 0, 1},
                                   {2, 256, 129, 5, 4, 1, 1, 1, 1}, {40, 16, 32, 16, 8, 1, 1, 1, 1},
                                   {1, 300, 20, 4, 7, 1, 1, 1, 1},  {9, 92, 91, 16, 15, 1, 1, 1, 1}};
  // The largest errors, as parts of the largest result; docs/design.md has them, and optim/verify.cpp counts
  // on them.
  const std::map<std::string, std::pair<double, double>> largest = {
      {"conv2d", {1.2e-5, 6e-3}}, {"conv2d_input_grad", {1e-5, 6e-3}}, {"conv2d_weight_grad", {1e-5, 7e-3}}};
  for (const Form& form : forms({f32, bf16})) {
    CAPTURE(form.name);
    const Computing computing(form);
    for (const auto& [op, allowed] : largest)
      for (const Case& c : cases)
        CHECK(error_of(op, c, form.dtype) < (form.dtype == f32 ? allowed.first : allowed.second));
  }
}

TEST_CASE("Winograd convolutions with windows of 5×5 agree with the reference, and their data gradients") {
  const std::vector<Case> cases = {{1, 16, 32, 12, 12, 0, 0, 0, 0, 5}, {3, 17, 33, 9, 11, 2, 2, 2, 2, 5},
                                   {2, 40, 34, 7, 6, 0, 1, 2, 3, 5},   {1, 16, 20, 5, 6, 4, 4, 4, 4, 5},
                                   {17, 16, 18, 8, 7, 2, 2, 2, 2, 5},  {1, 128, 33, 8, 5, 1, 2, 1, 2, 5}};
  for (const Form& form : forms({f32})) {
    CAPTURE(form.name);
    const Computing computing(form);
    for (const char* op : {"conv2d", "conv2d_input_grad"})
      for (const Case& c : cases) CHECK(error_of(op, c, f32) < 1.2e-5);
  }
}

TEST_CASE("Winograd convolutions with constant weights end with bias, residual and limits") {
  for (const Form& form : forms({f32})) {
    CAPTURE(form.name);
    const Computing computing(form);
    for (const int64_t window : {3, 5})
      for (const bool residual : {false, true}) check_ends(window, residual);
  }
}

TEST_CASE("what Winograd does not take is said") {
  const auto reason = [](Attributes changes, Shape w) {
    Graph graph;
    Attributes attributes{{"strides", Ints{1, 1}},
                          {"pads", Ints{1, 1, 1, 1}},
                          {"dilations", Ints{1, 1}},
                          {"groups", int64_t{1}}};
    for (const auto& [name, value] : changes.items()) attributes.set(name, value);
    const Value y = graph.add(
        "conv2d", {graph.input("x", {f32, {64, 32, 16, 16}}), graph.input("w", {f32, std::move(w)})},
        attributes);
    return cpu::providers().at("winograd").make()->why_not(graph, graph.node(y)).value_or("");
  };
  if (!cpu::has_avx2()) return;
  CHECK(reason({}, {32, 32, 3, 3}).empty());
  CHECK(reason({{"strides", Ints{2, 2}}}, {32, 32, 3, 3}) == "only stride 1");
  CHECK(reason({{"dilations", Ints{2, 2}}}, {32, 32, 3, 3}) == "only dilation 1");
  CHECK(reason({{"groups", int64_t{2}}}, {32, 16, 3, 3}) == "only one group");
  CHECK(reason({}, {32, 32, 7, 7}) == "only windows of 3×3 and 5×5");
  CHECK(reason({{"pads", Ints{3, 0, 0, 0}}}, {32, 32, 3, 3}) == "only padding that windows overlap");
  CHECK(reason({}, {8, 32, 3, 3}) == "fewer than 16 channels");
}

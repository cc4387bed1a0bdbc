#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>

#include <millrace/operator.h>

#include "backend/cpu/kernels/depthwise/kernels.h"
#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "support/codegen_support.h"
#include "target/provider.h"

using namespace millrace;

namespace {

using Ints = std::vector<int64_t>;

struct Case {
  int64_t images, channels, height, width, kernel_height, kernel_width;
  Ints strides = {1, 1}, pads = {0, 0, 0, 0}, dilations = {1, 1};
};

std::string words(const std::string& op, DType dtype, const Case& c) {
  return fmt::format("{} {} {}×{}×{}×{} by {}×{} strides {} pads {} dilations {}", op, dtype.name(), c.images,
                     c.channels, c.height, c.width, c.kernel_height, c.kernel_width,
                     fmt::join(c.strides, ","), fmt::join(c.pads, ","), fmt::join(c.dilations, ","));
}

struct Made {
  Graph graph;
  Value node;
};

/// With constant weights where some are given.
Made make(const std::string& op, DType dtype, const Case& c, const Array* weights = nullptr) {
  Made made;
  const Type x{dtype, {c.images, c.channels, c.height, c.width}},
      w{dtype, {c.channels, 1, c.kernel_height, c.kernel_width}};
  Attributes attributes{
      {"strides", c.strides}, {"pads", c.pads}, {"dilations", c.dilations}, {"groups", c.channels}};
  Graph forward;
  const Type y =
      forward.type(forward.add("conv2d", {forward.input("x", x), forward.input("w", w)}, attributes));
  if (op == "conv2d_input_grad") attributes.set("input_shape", x.shape);
  if (op == "conv2d_weight_grad") attributes.set("weight_shape", w.shape);
  const Value a = made.graph.input("a", op == "conv2d_input_grad" ? y : x),
              b = weights ? made.graph.constant(*weights)
                          : made.graph.input("b", op == "conv2d_weight_grad" ? y : w);
  made.node = made.graph.add(op, {a, b}, attributes);
  made.graph.set_outputs({made.node});
  return made;
}

/// A copy of an array that ends, or begins, where memory may not be touched.
class Guarded {
 public:
  Guarded(const Array& array, bool at_end) : bytes_(static_cast<size_t>(array.bytes())) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), inner = (bytes_ + page - 1) / page * page;
    mapped_ = inner + 2 * page;
    base_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(base_ != MAP_FAILED);
    REQUIRE(mprotect(base_ + page, inner, PROT_READ | PROT_WRITE) == 0);
    data_ = base_ + page + (at_end ? inner - bytes_ : 0);
    std::memcpy(data_, array.data(), bytes_);
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  void* data() const { return data_; }

 private:
  size_t bytes_, mapped_ = 0;
  char *base_ = nullptr, *data_ = nullptr;
};

/// Scratch and result begin as NaN: nothing may be read that was not written.
Array run(const Made& made, const std::vector<Array>& values, int threads,
          const cpu::depthwise::Arithmetic& arithmetic) {
  const auto provider = cpu::providers().at("depthwise").make();
  const Node& node = made.graph.node(made.node);
  REQUIRE(!provider->why_not(made.graph, node));
  const LayoutWish wish = provider->layouts(made.graph, node);
  const KernelRequest request{made.graph, node, {*wish.operands[0], *wish.operands[1]}, {*wish.results[0]}};
  const auto kernel = node.op->name == "conv2d_weight_grad"
                          ? cpu::depthwise::build_weight_gradient(request, arithmetic)
                          : cpu::depthwise::build_convolution(request, arithmetic);
  std::vector<Array> stored;
  for (size_t i = 0; i < values.size(); ++i) stored.push_back(to_layout(values[i], *wish.operands[i]));
  Array result(node.types[0]), scratch = Array::full(u8, Shape(Ints{kernel->scratch_bytes()}), 255);
  for (int64_t i = 0; i < result.count(); ++i) result.set(i, NAN);
  ThreadPool pool(threads);
  for (const bool at_end : {true, false}) {
    const Guarded a(stored[0], at_end), b(stored.back(), at_end), y(result, at_end), room(scratch, at_end);
    void* operands[] = {a.data(), b.data()};
    void* results[] = {y.data()};
    for (int repeat = 0; repeat < 2; ++repeat) kernel->run(operands, results, room.data(), pool);
    if (!at_end) std::memcpy(result.data(), y.data(), static_cast<size_t>(result.bytes()));
  }
  return from_layout(result, *wish.results[0]);
}

std::vector<Array> random_operands(const Made& made) {
  std::vector<Array> values;
  for (const Value& operand : made.graph.node(made.node).operands)
    if (!made.graph.constant_value(operand))
      values.push_back(random_array(made.graph.type(operand), 3 + values.size(), -1, 1));
  return values;
}

/// The largest difference from the reference, beyond what rounding the result to its type explains.
double error(const Array& expected, const Array& result) {
  const double rounding = result.dtype() == f32 ? 0 : 1.0 / 128;
  double worst = 0;
  for (int64_t i = 0; i < expected.count(); ++i) {
    if (!std::isfinite(result.at(i))) return HUGE_VAL;
    worst = std::max(worst, std::abs(result.at(i) - expected.at(i)) - rounding * std::abs(expected.at(i)));
  }
  return worst;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {{2, 16, 9, 14, 3, 3, {1, 1}, {1, 1, 1, 1}},
                                        {2, 32, 14, 14, 3, 3, {2, 2}, {1, 1, 1, 1}},
                                        {2, 33, 15, 13, 3, 3, {2, 2}, {1, 1, 1, 1}},
                                        {1, 48, 16, 17, 3, 3, {2, 2}, {0, 0, 1, 1}},
                                        {3, 1, 9, 11, 3, 3, {1, 1}, {1, 1, 1, 1}},
                                        {2, 3, 10, 8, 3, 3, {2, 2}, {1, 1, 1, 1}},
                                        {2, 7, 7, 7, 3, 3, {1, 1}, {1, 1, 1, 1}},
                                        {1, 40, 12, 15, 5, 5, {1, 1}, {2, 2, 2, 2}},
                                        {2, 19, 14, 12, 5, 5, {2, 2}, {2, 1, 1, 2}},
                                        {1, 20, 11, 13, 3, 3, {1, 1}, {2, 2, 2, 2}, {2, 2}},
                                        {2, 17, 13, 12, 3, 3, {2, 2}, {2, 2, 2, 2}, {2, 2}},
                                        {1, 18, 12, 14, 3, 3, {2, 3}, {1, 2, 0, 1}, {3, 2}},
                                        {2, 16, 2, 3, 5, 5, {1, 1}, {2, 2, 2, 2}},
                                        {2, 35, 4, 4, 7, 7, {1, 1}, {3, 3, 3, 3}},
                                        {1, 16, 1, 1, 3, 3, {2, 2}, {1, 1, 1, 1}},
                                        {1, 16, 6, 5, 3, 3, {1, 1}, {4, 5, 3, 6}},
                                        {2, 24, 5, 6, 1, 1},
                                        {2, 24, 9, 8, 1, 1, {2, 2}},
                                        {1, 31, 8, 23, 2, 4, {1, 3}, {1, 0, 0, 3}},
                                        {1, 64, 10, 9, 3, 5, {2, 1}, {1, 2, 1, 2}},
                                        {1, 16, 7, 9, 3, 3, {5, 20}, {1, 1, 1, 1}},
                                        {40, 96, 15, 16, 3, 3, {1, 1}, {1, 1, 1, 1}}};
  return all;
}

const Ints thread_counts = {2, 5};

}  // namespace

TEST_CASE("depthwise convolutions agree with the reference, and do not depend on the number of threads") {
  for (const std::string op : {"conv2d", "conv2d_input_grad", "conv2d_weight_grad"})
    for (const DType dtype : {f32, bf16})
      for (const Case& c : cases()) {
        CAPTURE(words(op, dtype, c));
        const Made made = make(op, dtype, c);
        const std::vector<Array> values = random_operands(made);
        const Array expected = ref::evaluate(made.graph, values)[0];
        for (const cpu::depthwise::Arithmetic* arithmetic : cpu::depthwise::arithmetics()) {
          CAPTURE(arithmetic->name);
          const Array result = run(made, values, 1, *arithmetic);
          CHECK(error(expected, result) < 1e-4 * static_cast<double>(c.images));
          for (const int64_t threads : thread_counts)
            CHECK(run(made, values, static_cast<int>(threads), *arithmetic).identical(result));
        }
      }
}

TEST_CASE("an infinite pixel reaches only those results of a depthwise convolution that meet it") {
  for (const cpu::depthwise::Arithmetic* arithmetic : cpu::depthwise::arithmetics())
    for (const DType dtype : {f32, bf16})
      for (const int64_t stride : {1, 2}) {
        CAPTURE(arithmetic->name);
        CAPTURE(dtype.name());
        const Made made = make("conv2d", dtype, {1, 64, 7, 16, 3, 3, {stride, stride}, {1, 1, 1, 1}});
        std::vector<Array> values = random_operands(made);
        for (const int64_t pixel : {0, 4, 15, 7 * 16 - 1, 3 * 16 + 8})
          for (int64_t channel = pixel % 3; channel < 64; channel += 5)
            values[0].set(channel * 7 * 16 + pixel, pixel % 2 == 0 ? INFINITY : NAN);
        const Array expected = ref::evaluate(made.graph, values)[0],
                    result = run(made, values, 1, *arithmetic);
        int64_t differ = 0;
        for (int64_t i = 0; i < result.count(); ++i)
          differ += std::isfinite(result.at(i)) != std::isfinite(expected.at(i));
        CHECK(differ == 0);
      }
}

TEST_CASE("constant weights of a depthwise convolution are turned before, with the same result") {
  const cpu::depthwise::Arithmetic& arithmetic = *cpu::depthwise::arithmetics().front();
  for (const DType dtype : {f32, bf16}) {
    const Case c{2, 33, 9, 8, 3, 3, {1, 1}, {1, 1, 1, 1}};
    const Made made = make("conv2d", dtype, c);
    const std::vector<Array> values = random_operands(made);
    const Made fixed = make("conv2d", dtype, c, &values[1]);
    CHECK(run(fixed, {values[0]}, 2, arithmetic).identical(run(made, values, 2, arithmetic)));
  }
}

TEST_CASE("what depthwise kernels do not take is said") {
  const auto provider = cpu::providers().at("depthwise").make();
  const auto reason = [&](const Made& made) {
    return provider->why_not(made.graph, made.graph.node(made.node)).value_or("");
  };
  CHECK(reason(make("conv2d", f32, {1, 16, 8, 8, 3, 3})).empty());
  CHECK(reason(make("conv2d", f64, {1, 16, 8, 8, 3, 3})) == "only f32 and bf16, not f64");
  CHECK(reason(make("conv2d_weight_grad", f32, {0, 16, 8, 8, 3, 3})) == "an operand or the result is empty");
  CHECK(reason(make("conv2d", f32, {1, 16, 20, 20, 12, 12})) == "only kernels of up to 128 elements");
  Made grouped;
  grouped.node = grouped.graph.add(
      "conv2d",
      {grouped.graph.input("x", {f32, {1, 4, 5, 5}}), grouped.graph.input("w", {f32, {8, 1, 3, 3}})},
      {{"groups", int64_t{4}}});
  CHECK(reason(grouped) == "only as many groups as channels and results");
}

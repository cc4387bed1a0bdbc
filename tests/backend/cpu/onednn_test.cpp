#include <cmath>
#include <doctest/doctest.h>

#include <millrace/operator.h>
#include <millrace/random.h>

#include "backend/cpu/kernels/vectors.h"
#include "backend/ref/evaluate.h"
#include "target/provider.h"
#include "target/shared_constants.h"

using namespace millrace;

namespace {

using Ints = std::vector<int64_t>;

Array random_array(const Type& type, uint64_t stream) {
  Array array(type);
  RandomStream random(7, stream);
  for (int64_t i = 0; i < array.count(); ++i)
    array.set(i, static_cast<double>(random.below(2001)) / 1000 - 1);
  return array;
}

/// The elements of a row-major array, moved to (or back from) a layout.
Array moved(const Array& array, const Layout& layout, bool back) {
  if (layout.empty()) return array.clone();
  const Ints sizes = array.shape().sizes();
  const int rank = static_cast<int>(sizes.size());
  Ints strides(rank);
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[layout[i]] = stride;
    stride *= sizes[layout[i]];
  }
  Array result(array.type());
  for (int64_t flat = 0; flat < array.count(); ++flat) {
    int64_t rest = flat, other = 0;
    for (int i = rank - 1; i >= 0; --i) {
      other += rest % sizes[i] * strides[i];
      rest /= sizes[i];
    }
    if (back)
      result.set(flat, array.at(other));
    else
      result.set(other, array.at(flat));
  }
  return result;
}

struct Case {
  std::string op;
  std::vector<Type> operands;
  Attributes attributes;
};

enum class Layouts { wished, row_major };

Array run(const Case& c, const std::vector<Array>& values, Layouts layouts, bool constant, int threads,
          std::string* description = nullptr) {
  const auto provider = cpu::providers().at("onednn").make();
  Graph graph;
  const Value a = graph.input("a", c.operands[0]);
  const Value b = constant ? graph.constant(values[1]) : graph.input("b", c.operands[1]);
  const Value y = graph.add(c.op, {a, b}, c.attributes);
  const Node& node = graph.node(y);
  KernelRequest request{graph, node, {{}, {}}, {{}}};
  if (layouts == Layouts::wished) {
    const LayoutWish wish = provider->layouts(graph, node);
    for (int i = 0; i < 2; ++i) request.operand_layouts[i] = wish.operands[i].value_or(Layout{});
    request.result_layouts[0] = wish.results[0].value_or(Layout{});
  }
  const auto kernel = provider->build(request);
  if (description) *description = kernel->description();
  Array left = moved(values[0], request.operand_layouts[0], false),
        right = moved(values[1], request.operand_layouts[1], false),
        result = Array::full(node.types[0].dtype, node.types[0].shape, 99);
  if (constant) right = Array(values[1].type());  // not read
  Array scratch = Array::full(u8, Shape(Ints{kernel->scratch_bytes()}), 255);
  void* operands[] = {left.data(), right.data()};
  void* results[] = {result.data()};
  ThreadPool pool(threads);
  for (int repeat = 0; repeat < 2; ++repeat) kernel->run(operands, results, scratch.data(), pool);
  return moved(result, request.result_layouts[0], true);
}

/// Largest |a − b| / (1 + largest |b|).
double difference(const Array& a, const Array& b) {
  double scale = 0, worst = 0;
  for (int64_t i = 0; i < b.count(); ++i) {
    scale = std::max(scale, std::abs(b.at(i)));
    worst = std::max(worst, std::abs(a.at(i) - b.at(i)));
    if (std::isnan(a.at(i))) return HUGE_VAL;
  }
  return worst / (1 + scale);
}

std::optional<std::string> refusal(const Case& c) {
  Graph graph;
  const Value a = graph.input("a", c.operands[0]), b = graph.input("b", c.operands[1]);
  return cpu::providers().at("onednn").make()->why_not(graph,
                                                       graph.node(graph.add(c.op, {a, b}, c.attributes)));
}

void check(const Case& c) {
  CAPTURE(c.op);
  CAPTURE(c.operands[0].str());
  CAPTURE(c.operands[1].str());
  if (c.operands[0].dtype == bf16 && !cpu::has_avx512()) {
    CHECK(refusal(c) == "bf16 takes AVX-512");
    return;
  }
  REQUIRE(!refusal(c));
  const std::vector<Array> values = {random_array(c.operands[0], 1), random_array(c.operands[1], 2)};
  Graph graph;
  const Value y =
      graph.add(c.op, {graph.input("a", c.operands[0]), graph.input("b", c.operands[1])}, c.attributes);
  graph.set_outputs({y});
  const Array expected = ref::evaluate(graph, values)[0];
  std::string description;
  const Array one = run(c, values, Layouts::wished, false, 1, &description);
  CAPTURE(description);
  const bool half = c.operands[0].dtype == bf16;
  CHECK(difference(one, expected) < (half ? 8e-3 : 2e-6));
  for (const int threads : {2, 3, 5}) CHECK(run(c, values, Layouts::wished, false, threads).identical(one));
  CHECK(difference(run(c, values, Layouts::row_major, false, 2), expected) < (half ? 8e-3 : 2e-6));
  if (c.op != "conv2d_weight_grad") {
    const Array packed = run(c, values, Layouts::wished, true, 2);
    CHECK(difference(packed, one) < (half ? 8e-3 : 2e-6));
    // Weights of products, and large ones of 1×1 convolutions, may be packed for other kernels.
    const bool in_panels =
        c.op == "matmul" || (values[1].bytes() >= 128 << 10 && c.operands[1].shape[2] == 1);
    if (!in_panels) CHECK(packed.identical(one));
  }
}

/// What oneDNN's kernel has packed of a constant second operand.
std::vector<Array> packed_by(const std::string& op, const Type& first, const Array& constant) {
  Graph graph;
  const Value a = graph.input("a", first);
  const Node& node = graph.node(graph.add(op, {a, graph.constant(constant)}));
  const auto provider = cpu::providers().at("onednn").make();
  const LayoutWish wish = provider->layouts(graph, node);
  const auto kernel = provider->build(
      {graph, node, {wish.operands[0].value_or(Layout{}), {}}, {wish.results[0].value_or(Layout{})}});
  const auto* const packing = dynamic_cast<const PackingKernel*>(kernel.get());
  REQUIRE(packing);
  const std::vector<Array> packed = packing->packed();
  REQUIRE(!packed.empty());
  return packed;
}

/// conv2d and its two gradients.
void check_convolution(DType dtype, const Ints& x, const Ints& w, const Attributes& attributes) {
  const Type tx{dtype, Shape(x)}, tw{dtype, Shape(w)};
  check({"conv2d", {tx, tw}, attributes});
  Graph graph;
  const Type ty = graph.type(graph.add("conv2d", {graph.input("x", tx), graph.input("w", tw)}, attributes));
  Attributes with_input = attributes, with_weights = attributes;
  with_input.set("input_shape", tx.shape);
  with_weights.set("weight_shape", tw.shape);
  check({"conv2d_input_grad", {ty, tw}, with_input});
  check({"conv2d_weight_grad", {tx, ty}, with_weights});
}

}  // namespace

TEST_CASE("oneDNN agrees with the reference on all samples of its operators, or says why it declines") {
  int taken = 0;
  for (const std::string op : {"matmul", "conv2d", "conv2d_input_grad", "conv2d_weight_grad"})
    for (const Sample& sample : get_operator(op).samples) {
      const Case c{op, sample.operands, sample.attributes};
      if (const auto why = refusal(c)) {
        CHECK((why->find("only f32 and bf16") == 0 || why->find("empty") != std::string::npos ||
               (*why == "bf16 takes AVX-512" && !cpu::has_avx512())));
        continue;
      }
      check(c);
      ++taken;
    }
  CHECK(taken >= 20);
}

TEST_CASE("oneDNN matrix products agree with the reference and do not depend on the number of threads") {
  struct {
    int64_t batch, m, k, n;
  } const sizes[] = {{1, 256, 14, 128},  {1, 1, 845, 512},  {1, 300, 70, 200}, {1, 129, 300, 67},
                     {1, 17, 1000, 300}, {3, 100, 64, 130}, {24, 65, 33, 65},  {1, 9, 211, 1001},
                     {1, 70, 96, 1024},  {1, 16, 40, 640},  {1, 7, 500, 800}};
  for (const auto& s : sizes)
    for (int transposed = 0; transposed < 4; ++transposed)
      for (const DType dtype : {f32, bf16}) {
        const bool ta = transposed & 1, tb = transposed & 2;
        const auto shape = [&](int64_t rows, int64_t columns) {
          return s.batch == 1 ? Shape(Ints{rows, columns}) : Shape(Ints{s.batch, rows, columns});
        };
        check({"matmul",
               {{dtype, ta ? shape(s.k, s.m) : shape(s.m, s.k)},
                {dtype, tb ? shape(s.n, s.k) : shape(s.k, s.n)}},
               {{"transpose_a", ta}, {"transpose_b", tb}}});
      }
}

TEST_CASE("a constant right side in f32 has one form for all numbers of rows, but for very few") {
  const auto packed = [&](const Array& constant, int64_t rows) {
    return packed_by("matmul", {f32, {rows, constant.shape()[0]}}, constant);
  };
  for (const int64_t columns : {int64_t{768}, int64_t{2048}}) {
    CAPTURE(columns);
    const Array constant = random_array({f32, {512, columns}}, 1);
    // While somebody has an array, others get the same.
    const std::vector<Array> many = packed(constant, 17), few = packed(constant, 1);
    REQUIRE(many.size() == 1);
    REQUIRE(few.size() == 1);
    for (const int64_t rows : {18, 100, 256, 1000})
      for (const Array& form : packed(constant, rows)) CHECK(form.shares_memory(many[0]));
    for (const int64_t rows : {2, 7, 16})
      for (const Array& form : packed(constant, rows)) CHECK(form.shares_memory(few[0]));
    // Rows are read where they lie, unless they all meet in the same places of a cache.
    CHECK(many[0].shares_memory(constant) == (columns == 768));
  }
}

TEST_CASE("large weights of a 1×1 convolution have one form, whatever the maps and the chunks are") {
  if (!cpu::has_avx512()) return;
  const Array weights = random_array({f32, {512, 256, 1, 1}}, 1);
  const std::vector<Array> one = packed_by("conv2d", {f32, {1, 256, 7, 7}}, weights);
  REQUIRE(one.size() == 1);
  for (const Ints& maps :
       {Ints{1, 256, 14, 14}, Ints{1, 256, 56, 56}, Ints{2, 256, 7, 7}, Ints{16, 256, 14, 9}})
    for (const Array& form : packed_by("conv2d", {f32, Shape(maps)}, weights))
      CHECK(form.shares_memory(one[0]));
  // By channels, rows and images, also of every other row.
  for (const int64_t stride : {1, 2})
    for (const Ints& maps :
         {Ints{1, 256, 7, 7}, Ints{1, 256, 28, 28}, Ints{1, 256, 27, 29}, Ints{9, 256, 14, 14}})
      check({"conv2d", {{f32, Shape(maps)}, {f32, {512, 256, 1, 1}}}, {{"strides", Ints{stride, stride}}}});
}

TEST_CASE("oneDNN convolutions split by images agree with the reference") {
  const Attributes same{{"pads", Ints{1, 1, 1, 1}}};
  check_convolution(f32, {33, 3, 32, 32}, {16, 3, 3, 3}, same);
  check_convolution(f32, {19, 64, 8, 8}, {64, 64, 3, 3}, same);
  check_convolution(f32, {17, 24, 15, 17}, {40, 24, 3, 3},
                    {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}});
  check_convolution(f32, {18, 32, 14, 14}, {64, 32, 1, 1}, {{"strides", Ints{2, 2}}});
  check_convolution(bf16, {17, 32, 16, 16}, {32, 32, 3, 3}, same);
  check_convolution(bf16, {16, 64, 9, 9}, {96, 64, 1, 1}, {});
}

TEST_CASE("oneDNN convolutions of few images are split by rows or channels and agree with the reference") {
  const Attributes same{{"pads", Ints{1, 1, 1, 1}}};
  check_convolution(f32, {1, 3, 70, 70}, {64, 3, 7, 7},
                    {{"pads", Ints{3, 3, 3, 3}}, {"strides", Ints{2, 2}}});
  check_convolution(f32, {1, 64, 28, 28}, {64, 64, 3, 3}, same);
  check_convolution(f32, {2, 48, 29, 27}, {32, 48, 3, 5},
                    {{"pads", Ints{0, 2, 1, 1}}, {"strides", Ints{1, 2}}});
  check_convolution(f32, {1, 128, 7, 7}, {256, 128, 3, 3}, same);
  check_convolution(bf16, {1, 128, 7, 7}, {128, 128, 3, 3}, same);
  check_convolution(f32, {1, 96, 28, 28}, {96, 1, 3, 3},
                    {{"pads", Ints{1, 1, 1, 1}}, {"groups", int64_t{96}}});
  check_convolution(f32, {1, 64, 30, 30}, {64, 16, 3, 3},
                    {{"pads", Ints{2, 2, 2, 2}}, {"dilations", Ints{2, 2}}, {"groups", int64_t{4}}});
}

TEST_CASE("oneDNN convolutions of unusual geometry agree with the reference") {
  // A kernel larger than the image, padding wider than the kernel, rows that the stride never reaches,
  // dilation.
  check_convolution(f32, {2, 3, 3, 3}, {4, 3, 5, 5}, {{"pads", Ints{2, 2, 2, 2}}});
  check_convolution(f32, {1, 16, 40, 40}, {16, 16, 1, 1}, {{"pads", Ints{3, 2, 1, 4}}});
  check_convolution(f32, {2, 5, 10, 11}, {7, 5, 2, 2}, {{"strides", Ints{3, 4}}});
  check_convolution(f32, {3, 16, 20, 20}, {32, 16, 3, 3},
                    {{"dilations", Ints{3, 2}}, {"pads", Ints{3, 0, 0, 2}}});
  check_convolution(f32, {20, 6, 9, 9}, {12, 1, 3, 3}, {{"groups", int64_t{6}}, {"strides", Ints{2, 1}}});
  check_convolution(f32, {2, 8, 1, 1}, {8, 8, 1, 1}, {});
}

TEST_CASE("oneDNN kernels describe themselves and split large work") {
  const Case c{"conv2d", {{f32, {32, 64, 16, 16}}, {f32, {64, 64, 3, 3}}}, {{"pads", Ints{1, 1, 1, 1}}}};
  std::string description;
  run(c, {random_array(c.operands[0], 1), random_array(c.operands[1], 2)}, Layouts::wished, false, 1,
      &description);
  CHECK(description.find("in 16 × 1 × 1 chunks") != std::string::npos);
}

#include <bit>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>

#include <millrace/operator.h>

#include "backend/cpu/kernels/gemm/kernels.h"
#include "backend/cpu/kernels/gemm/tap_order.h"
#include "backend/cpu/kernels/vectors.h"
#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "support/codegen_support.h"
#include "target/provider.h"

using namespace millrace;

namespace {

using Ints = std::vector<int64_t>;

struct Made {
  Graph graph;
  Value node;
};

Made make_matmul(DType dtype, int64_t batch, int64_t m, int64_t k, int64_t n, bool turn_a, bool turn_b,
                 const Array* constant = nullptr) {
  const auto shape = [&](int64_t rows, int64_t columns, bool turned) {
    Ints sizes{turned ? columns : rows, turned ? rows : columns};
    if (batch > 1) sizes.insert(sizes.begin(), batch);
    return Shape(sizes);
  };
  Made made;
  const Value a = made.graph.input("a", {dtype, shape(m, k, turn_a)});
  const Value b =
      constant ? made.graph.constant(*constant) : made.graph.input("b", {dtype, shape(k, n, turn_b)});
  made.node = made.graph.add("matmul", {a, b}, {{"transpose_a", turn_a}, {"transpose_b", turn_b}});
  made.graph.set_outputs({made.node});
  return made;
}

struct Window {
  int64_t images, in, out, height, width, kernel, stride, pad, dilation;
};

Made make_convolution(const std::string& op, DType dtype, const Window& c) {
  Made made;
  const int64_t reach = (c.kernel - 1) * c.dilation + 1;
  const Type x{dtype, {c.images, c.in, c.height, c.width}}, w{dtype, {c.out, c.in, c.kernel, c.kernel}},
      y{dtype,
        {c.images, c.out, (c.height + 2 * c.pad - reach) / c.stride + 1,
         (c.width + 2 * c.pad - reach) / c.stride + 1}};
  Attributes attributes{{"strides", Ints{c.stride, c.stride}},
                        {"pads", Ints{c.pad, c.pad, c.pad, c.pad}},
                        {"dilations", Ints{c.dilation, c.dilation}},
                        {"groups", int64_t{1}}};
  if (op == "conv2d_input_grad") attributes.set("input_shape", x.shape);
  if (op == "conv2d_weight_grad") attributes.set("weight_shape", w.shape);
  const Type &a = op == "conv2d_input_grad" ? y : x, &b = op == "conv2d_weight_grad" ? y : w;
  made.node = made.graph.add(op, {made.graph.input("a", a), made.graph.input("b", b)}, attributes);
  made.graph.set_outputs({made.node});
  return made;
}

std::vector<Array> random_operands(const Made& made) {
  std::vector<Array> values;
  for (const Value& operand : made.graph.node(made.node).operands)
    if (!made.graph.constant_value(operand))
      values.push_back(random_array(made.graph.type(operand), 3 + values.size(), -1, 1));
  return values;
}

/// Scratch and result begin as NaN: nothing may be read that was not written.
Array run(const Made& made, const std::vector<Array>& values, int threads, bool steady = false) {
  const auto provider = cpu::providers().at("gemm").make();
  const Node& node = made.graph.node(made.node);
  const LayoutWish wish = provider->layouts(made.graph, node);
  KernelRequest request{made.graph, node, {*wish.operands[0], *wish.operands[1]}, {*wish.results[0]}};
  if (steady) request.steady = {0, 1};
  const auto kernel = provider->build(request);
  std::vector<Array> stored;
  for (size_t i = 0; i < values.size(); ++i) stored.push_back(to_layout(values[i], *wish.operands[i]));
  Array result(node.types[0]),
      scratch = Array::full(u8, Shape(Ints{kernel->scratch_bytes()}), 255),
      kept = Array::full(u8, Shape(Ints{std::max<int64_t>(kernel->kept_bytes(), 64)}), 255);
  for (int64_t i = 0; i < result.count(); ++i) result.set(i, NAN);
  void* operands[] = {stored[0].data(), stored.size() > 1 ? stored[1].data() : nullptr};
  void* results[] = {result.data()};
  ThreadPool pool(threads);
  if (steady) kernel->prepare(operands, kept.data(), scratch.data(), pool);
  for (int repeat = 0; repeat < 2; ++repeat) kernel->run(operands, results, scratch.data(), pool);
  return from_layout(result, *wish.results[0]);
}

/// The largest difference from the reference in f32, beyond what rounding the result to its type explains.
double error(const Made& made, const std::vector<Array>& values, const Array& result) {
  const Array expected = ref::evaluate(made.graph, values)[0];
  const double rounding = result.dtype() == f32 ? 0 : 1.0 / 128;
  double worst = 0;
  for (int64_t i = 0; i < expected.count(); ++i) {
    if (!std::isfinite(result.at(i))) return HUGE_VAL;
    worst = std::max(worst, std::abs(result.at(i) - expected.at(i)) - rounding * std::abs(expected.at(i)));
  }
  return worst;
}

bool can_run(DType dtype) {
  const bool can = dtype == f32 ? cpu::has_avx512() : cpu::has_avx512_bf16();
  if (!can) MESSAGE("skipped: this CPU has no AVX-512 for " << dtype.name());
  return can;
}

/// What multiplies: vectors of AVX-512, tiles in their software form, or AVX2.
struct Form {
  DType dtype;
  bool tiles = false, avx2 = false;
};
const Form forms[] = {{f32}, {f32, false, true}, {bf16}, {bf16, true}};

bool can_run(const Form& form) { return form.avx2 ? cpu::has_avx2() : can_run(form.dtype); }

/// Products are multiplied so while it lives.
class Multiplying {
 public:
  explicit Multiplying(const Form& form) {
    cpu::gemm::set_product_arithmetic(form.avx2           ? &cpu::gemm::arithmetic_f32_avx2()
                                      : form.dtype == f32 ? &cpu::gemm::arithmetic_f32()
                                      : form.tiles        ? &cpu::gemm::arithmetic_bf16_tiles()
                                                          : &cpu::gemm::arithmetic_bf16());
  }
  ~Multiplying() { cpu::gemm::set_product_arithmetic(nullptr); }
  Multiplying(const Multiplying&) = delete;
  Multiplying& operator=(const Multiplying&) = delete;
};

void check(const Made& made, double tolerance) {
  const std::vector<Array> values = random_operands(made);
  const Array result = run(made, values, 1);
  CHECK(error(made, values, result) < tolerance);
  for (const int threads : {2, 5}) CHECK(run(made, values, threads).identical(result));
}

}  // namespace

TEST_CASE("packed matrix products agree with the reference, and do not depend on the number of threads") {
  struct Sizes {
    int64_t batch, m, k, n;
  };
  const std::vector<Sizes> cases = {
      {1, 14, 1, 32},
      {1, 15, 7, 33},
      {1, 100, 255, 70},
      {1, 29, 513, 97},
      {3, 40, 64, 50},
      {1, 300, 260, 800},
      {1, 64, 1025, 64},
      {1, 577, 33, 47},
      // Rows that are copied once for all chunks, as they fall into the same cache sets.
      {1, 70, 1024, 400},
      {2, 40, 2048, 420},
      {1, 33, 1537, 500}};
  for (const Form& form : forms) {
    const DType dtype = form.dtype;
    if (!can_run(form)) continue;
    const Multiplying as(form);
    for (const Sizes& s : cases)
      for (const bool turn_a : {false, true})
        for (const bool turn_b : {false, true}) {
          CAPTURE(form.tiles);
          CAPTURE(form.avx2);
          CAPTURE(fmt::format("{} {}×{}×{}×{} {}{}", dtype.name(), s.batch, s.m, s.k, s.n, turn_a, turn_b));
          check(make_matmul(dtype, s.batch, s.m, s.k, s.n, turn_a, turn_b), 1e-4);
        }
  }
}

TEST_CASE("a constant or steady right side is packed before, with the same result") {
  for (const Form& form : forms) {
    const DType dtype = form.dtype;
    if (!can_run(form)) continue;
    const Multiplying as(form);
    const Made plain = make_matmul(dtype, 1, 50, 300, 70, false, true);
    const std::vector<Array> values = random_operands(plain);
    const Array expected = run(plain, values, 2);
    CHECK(run(plain, values, 2, true).identical(expected));
    const Made fixed = make_matmul(dtype, 1, 50, 300, 70, false, true, &values[1]);
    CHECK(run(fixed, {values[0]}, 2).identical(expected));
  }
}

TEST_CASE("weight gradients as products agree with the reference") {
  const std::vector<Window> cases = {
      {2, 16, 14, 9, 7, 1, 1, 0, 1},   {3, 33, 40, 8, 6, 3, 1, 1, 1},   {2, 64, 30, 15, 15, 3, 2, 1, 1},
      {1, 20, 17, 23, 11, 5, 2, 2, 1}, {2, 48, 70, 12, 12, 1, 2, 0, 1}, {2, 32, 64, 14, 10, 3, 1, 2, 2},
      {9, 16, 300, 4, 4, 3, 1, 1, 1},  {1, 70, 20, 40, 40, 1, 1, 0, 1}, {2, 17, 16, 3, 3, 3, 1, 3, 1},
      {4, 64, 48, 40, 40, 1, 1, 0, 1}};  // of which some chunks have each a part of the positions
  for (const Form& form : forms) {
    const DType dtype = form.dtype;
    if (!can_run(form)) continue;
    const Multiplying as(form);
    for (const Window& w : cases) {
      CAPTURE(form.tiles);
      CAPTURE(fmt::format("{} {}→{} {}×{} k{} s{} p{} d{}", dtype.name(), w.in, w.out, w.height, w.width,
                          w.kernel, w.stride, w.pad, w.dilation));
      check(make_convolution("conv2d_weight_grad", dtype, w), 1e-3);
    }
  }
}

TEST_CASE("convolutions as products agree with the reference") {
  const std::vector<Window> cases = {
      {2, 32, 40, 9, 7, 1, 1, 0, 1},   {3, 33, 47, 8, 6, 3, 1, 1, 1},     {2, 64, 34, 15, 15, 3, 2, 1, 1},
      {1, 40, 37, 23, 11, 5, 2, 2, 1}, {2, 48, 70, 12, 12, 1, 2, 0, 1},   {2, 32, 64, 14, 10, 3, 1, 2, 2},
      {9, 600, 33, 4, 4, 3, 1, 1, 1},  {1, 70, 1030, 40, 40, 1, 1, 0, 1}, {2, 37, 36, 3, 3, 3, 1, 3, 1},
      {1, 520, 64, 6, 5, 1, 1, 0, 1},  {1, 33, 32, 5, 7, 3, 1, 0, 1},     {1, 33, 34, 9, 9, 9, 1, 1, 1}};
  for (const std::string op : {"conv2d", "conv2d_input_grad"})
    for (const Form& form : forms) {
      const DType dtype = form.dtype;
      if (!can_run(form)) continue;
      const Multiplying as(form);
      for (const Window& c : cases) {
        if (op == "conv2d_input_grad" && c.stride > 1) continue;
        CAPTURE(form.tiles);
        CAPTURE(fmt::format("{} {} {}→{} {}×{} k{} s{} p{} d{}", op, dtype.name(), c.in, c.out, c.height,
                            c.width, c.kernel, c.stride, c.pad, c.dilation));
        check(make_convolution(op, dtype, c), 1e-3);
      }
    }
}

TEST_CASE("constant weights of a convolution are packed before, with the same result") {
  for (const Form& form : forms) {
    const DType dtype = form.dtype;
    if (!can_run(form)) continue;
    const Multiplying as(form);
    for (const int64_t kernel : {1, 3}) {
      Made made = make_convolution("conv2d", dtype, {2, 33, 40, 9, 8, kernel, 1, kernel / 2, 1});
      const std::vector<Array> values = random_operands(made);
      Made fixed;
      const Value x = fixed.graph.input("x", made.graph.type(made.graph.inputs()[0]));
      fixed.node = fixed.graph.add("conv2d", {x, fixed.graph.constant(values[1])},
                                   made.graph.node(made.node).attributes);
      fixed.graph.set_outputs({fixed.node});
      CHECK(run(fixed, {values[0]}, 2).identical(run(made, values, 2)));
    }
  }
}

TEST_CASE("tiles sum in the order of TDPBF16PS, and lanes that are not asked for stay") {
  if (!can_run(bf16)) return;
  // One row, one column, three units: even and odd products are summed apart, then together.
  const auto unit = [](float even, float odd) {
    return std::bit_cast<uint32_t>(even) >> 16 | (std::bit_cast<uint32_t>(odd) & 0xFFFF0000U);
  };
  const float large = 0x1p30F, small = 0x1p-130F;  // subnormal
  const uint32_t a[] = {unit(large, 1), unit(3, -large), unit(small, 2)};
  alignas(64) uint32_t b[3 * 32] = {};
  for (int k = 0; k < 3; ++k) b[32 * k] = unit(1, 1);
  for (int k = 0; k < 3; ++k) b[32 * k + 31] = unit(1, 1);
  b[2 * 32 + 1] = unit(0x1p120F, 0);
  const auto product = [&](const cpu::gemm::Arithmetic& arithmetic, int64_t columns, float(&c)[33]) {
    std::fill(std::begin(c), std::end(c), 77.0F);
    if (arithmetic.begin) arithmetic.begin();
    arithmetic.multiply({.a = a,
                         .by_rows = true,
                         .step = 3,
                         .b = b,
                         .units = 3,
                         .rows = 1,
                         .columns = columns,
                         .c = c,
                         .ldc = 33,
                         .add = false});
    if (arithmetic.end) arithmetic.end();
  };
  float c[33];
  product(cpu::gemm::arithmetic_bf16_tiles(), 32, c);
  // Even: 2^30 + 3 is 2^30. Odd: 1 - 2^30 is -2^30, + 2 still.
  CHECK(c[0] == 0);
  CHECK(c[1] == 0);  // of a subnormal number, which counts as zero
  CHECK(c[30] == 0);
  CHECK(c[31] == 0);
  CHECK(c[32] == 77);
  product(cpu::gemm::arithmetic_bf16_tiles(), 5, c);
  CHECK(c[4] == 0);
  CHECK(c[5] == 77);
}

TEST_CASE("tiles take rows in segments as vectors do") {
  if (!can_run(bf16)) return;
  // Units between segments, and behind the last, may be anything.
  constexpr int64_t rows = 29, columns = 27, units = 37, segments = 2, step = 100;
  const Array values = random_array({bf16, {4 * (rows * step + segments * units * 32)}}, 5, -1, 1);
  const auto* const a = static_cast<const uint32_t*>(values.data());
  Array sums[2] = {Array(f32, {rows, columns}), Array(f32, {rows, columns})};
  const cpu::gemm::Arithmetic* const both[] = {&cpu::gemm::arithmetic_bf16(),
                                               &cpu::gemm::arithmetic_bf16_tiles()};
  for (int i = 0; i < 2; ++i)
    for (int64_t from = 0; from < rows; from += both[i]->block_rows) {
      auto* const c = static_cast<float*>(sums[i].data()) + from * columns;
      both[i]->multiply({.a = a + from * step,
                         .by_rows = true,
                         .step = step,
                         .b = a + (rows * step + 15) / 16 * 16,
                         .units = units,
                         .rows = std::min(both[i]->block_rows, rows - from),
                         .columns = columns,
                         .c = c,
                         .ldc = columns,
                         .add = false,
                         .segments = segments,
                         .segment_step = 50});
    }
  for (int64_t i = 0; i < rows * columns; ++i)
    CHECK(sums[1].at(i) == doctest::Approx(sums[0].at(i)).epsilon(1e-4));
}

TEST_CASE("a CPU's tiles give the bits of their software form") {
  if (!can_run(bf16)) return;
  if (!cpu::gemm::tiles_work()) {
    MESSAGE("skipped: this CPU has no tiles");
    return;
  }
  const Made made = make_matmul(bf16, 1, 100, 1100, 70, true, false);
  const std::vector<Array> values = random_operands(made);
  const Array by_tiles = run(made, values, 2);
  const Multiplying as({bf16, true});
  CHECK(run(made, values, 2).identical(by_tiles));
}

TEST_CASE("kernels of thousands of taps take no memory for permutations of them") {
  // Its square would be 16 GB of tables.
  const int64_t taps = 65'536;
  for (const DType dtype : {f32, bf16}) {
    if (!can_run(dtype)) continue;
    const cpu::gemm::Arithmetic& arithmetic =
        dtype == f32 ? cpu::gemm::arithmetic_f32() : cpu::gemm::arithmetic_bf16();
    const cpu::gemm::TapOrder order(arithmetic, taps);
    const int64_t channels = 3;
    const Array weights = random_array({dtype, {channels, taps}}, 1);
    Array moved(dtype, {taps, channels}), back(dtype, {channels, taps});
    order.outwards(weights.data(), moved.data(), channels, channels);
    CHECK(moved.at(5 * channels + 2) == weights.at(2 * taps + 5));
    order.inwards(moved.data(), channels, back.data(), channels);
    CHECK(back.identical(weights));
  }
}

TEST_CASE("what packed products do not take is said") {
  if (!cpu::has_avx2()) return;
  const auto provider = cpu::providers().at("gemm").make();
  const auto reason = [&](const Made& made) {
    return *provider->why_not(made.graph, made.graph.node(made.node));
  };
  CHECK(reason(make_matmul(f64, 1, 64, 64, 64, false, false)) == "only f32 and bf16, not f64");
  CHECK(reason(make_matmul(f32, 1, 8, 4096, 4096, false, false)) == "too small for blocks of 14×32");
  CHECK(reason(make_matmul(f32, 1, 64, 64, 64, false, false)) == "too little work to pack for");
  CHECK(reason(make_matmul(f32, 1, 64, 0, 64, false, false)) == "an operand or the result is empty");
  CHECK(reason(make_convolution("conv2d_weight_grad", f32, {2, 3, 64, 100, 100, 7, 2, 3, 1})) ==
        "too few channels for blocks of 14×32");
  CHECK(reason(make_convolution("conv2d_input_grad", f32, {2, 64, 64, 100, 100, 3, 2, 1, 1})) ==
        "gradients of strides need holes in the picture");
  CHECK(reason(make_convolution("conv2d", f32, {2, 3, 64, 100, 100, 3, 1, 1, 1})) ==
        "too few channels for blocks of 14×32");
  const Made taken = make_matmul(f32, 1, 512, 512, 512, false, true);
  CHECK(!provider->why_not(taken.graph, taken.graph.node(taken.node)));
}

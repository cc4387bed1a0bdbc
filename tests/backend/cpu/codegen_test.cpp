#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include <millrace/operator.h>

#include "backend/ref/evaluate.h"
#include "ir/operators.h"
#include "ops/build.h"
#include "support/codegen_support.h"
#include "support/random_graph.h"
#include "support/samples.h"

using namespace millrace;

namespace {

/// Runs `body` compiled and plainly and compares.
void check(const Graph& body, double tolerance = 1e-5, const CodegenRun& options = {}) {
  std::vector<Array> inputs;
  for (const Value& input : body.inputs())
    inputs.push_back(random_array(body.type(input), inputs.size() + 1));
  const std::vector<Array> got = run_fused(body, inputs, options), expected = ref::evaluate(body, inputs);
  for (size_t i = 0; i < got.size(); ++i) CHECK(test::difference(got[i], expected[i]) <= tolerance);
}

Graph chain(const Shape& shape, DType dtype = f32) {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {dtype, shape}), y = graph.input("y", {dtype, shape});
  const Value s = b.add(x, y);
  graph.set_outputs({b.select(b.binary("greater", s, b.zeros(s)), s, b.zeros(s)), b.add(s, 1.5)});
  return graph;
}

}  // namespace

TEST_CASE("A flat chain of element-wise operators is compiled at any size") {
  for (const int64_t n : {1, 3, 15, 16, 17, 31, 32, 33, 100, 4096, 5000, 100003}) check(chain({n}));
  check(chain({}));
  check(chain({3, 5, 7}));
  check(chain({0, 5}));
  for (const DType dtype : {f64, i8, u8, i32, i64}) check(chain({77}, dtype), 1e-12);
  for (const DType dtype : {f16, bf16}) check(chain({77}, dtype), 2e-2);
}

TEST_CASE("Comparisons of positions hold at their ends, where compiling decides them") {
  for (const char* op : {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})
    for (const int64_t bound : {-1, 0, 1, 3, 4, 5}) {
      CAPTURE(op);
      CAPTURE(bound);
      Graph graph;
      ops::Build b(graph);
      const Value x = graph.input("x", {f32, {5}}), zero = b.zeros(x);
      const Value place = graph.add("iota", {}, {{"shape", Shape{5}}, {"axis", int64_t{0}}, {"dtype", i64}}),
                  limit = b.fill(place, static_cast<double>(bound));
      graph.set_outputs(
          {b.select(b.binary(op, place, limit), x, zero), b.select(b.binary(op, limit, place), x, zero)});
      check(graph, 0);
    }
}

TEST_CASE("Shifts by amounts known in advance: within the width, of the width and beyond") {
  for (const DType dtype : {u8, i32, u64})
    for (const char* op : {"shift_left", "shift_right"})
      for (const int beyond : {-7, -1, 0, 1}) {
        const int amount = dtype.bits + beyond;
        CAPTURE(dtype.name());
        CAPTURE(op);
        CAPTURE(amount);
        Graph graph;
        ops::Build b(graph);
        const Value x = graph.input("x", {dtype, {37}});
        graph.set_outputs({b.binary(op, x, b.fill(x, amount))});
        check(graph, 0);
      }
}

TEST_CASE("Joins and paddings, of equal parts or not, along any axis") {
  for (const int64_t axis : {0, 1, 2})
    for (const std::vector<int64_t>& lengths :
         std::vector<std::vector<int64_t>>{{32, 32, 32, 32}, {16, 48}, {7, 9, 20}, {1, 1}, {64, 0, 64}}) {
      Graph graph;
      ops::Build b(graph);
      std::vector<Value> joined;
      Value sum;
      int64_t total = 0, before = 0;
      for (const int64_t length : lengths) total += length;
      for (const int64_t length : lengths) {
        Shape shape = {3, 5, 2};
        shape[axis] = length;
        const Value x = graph.input("x", {f32, shape}), y = graph.input("y", {f32, shape});
        joined.push_back(b.mul(x, y));
        std::vector<int64_t> low(3, 0), high(3, 0);
        low[axis] = before;
        high[axis] = total - before - length;
        before += length;
        const Value padded = graph.add("pad", {b.unary("tanh", b.add(x, y))}, {{"low", low}, {"high", high}});
        sum = sum.valid() ? b.add(sum, padded) : padded;
      }
      const Value whole = graph.add("concat", joined, {{"axis", axis}});
      graph.set_outputs({sum, b.add(whole, sum), b.sub(whole, 1)});
      check(graph);
    }
}

TEST_CASE("Paddings of small types, whose elements lie apart in memory, are zeros") {
  for (const DType dtype : {u8, bf16, f16, f32}) {
    CAPTURE(dtype.name());
    Graph graph;
    ops::Build b(graph);
    const Value x = graph.input("x", {dtype, {40, 37}});
    const Value turned = graph.add("transpose", {x}, {{"permutation", std::vector<int64_t>{1, 0}}});
    const Value padded = graph.add(
        "pad", {turned}, {{"low", std::vector<int64_t>{2, 5}}, {"high", std::vector<int64_t>{1, 30}}});
    graph.set_outputs({b.add(padded, padded)});
    check(graph, 0);
  }
}

TEST_CASE("Sums over any axes") {
  for (const std::vector<int64_t>& axes :
       std::vector<std::vector<int64_t>>{{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}})
    for (const Shape& shape : {Shape{3, 5, 7}, Shape{40, 33, 65}, Shape{1, 200, 64}, Shape{300, 1, 17}}) {
      Graph graph;
      ops::Build b(graph);
      const Value x = graph.input("x", {f32, shape});
      graph.set_outputs({b.sum(b.add(x, 1), axes, false), b.sum(x, axes, false), b.add(x, 2)});
      check(graph, 1e-4);  // sums near zero of many terms
    }
}

TEST_CASE("Every sample of the operators that loop nests cover agrees with the reference") {
  int covered = 0;
  for (const Operator* op : library_operators()) {
    const bool nests = op->op_class == OpClass::elementwise || op->op_class == OpClass::movement ||
                       op->op_class == OpClass::generator || op->op_class == OpClass::reduction;
    if (!nests) continue;
    ++covered;
    for (const Sample& sample : op->samples) {
      const Graph graph = make_graph(*op, sample);
      const std::vector<Array> inputs = make_inputs(*op, sample);
      INFO(describe(*op, sample));
      const std::vector<Array> expected = ref::evaluate(graph, inputs);
      const std::vector<Array> got = run_kernel(*build_lone(graph), graph, inputs);
      for (size_t i = 0; i < got.size(); ++i) {
        double tolerance = 0;  // integers
        for (const auto& operand : sample.operands) {
          if (operand.dtype == f64) tolerance = std::max(tolerance, op->tolerance.f64);
          if (operand.dtype == f32) tolerance = std::max(tolerance, op->tolerance.f32);
          if (operand.dtype.is_float() && operand.dtype.bits == 16)
            tolerance = std::max(tolerance, op->tolerance.half);
        }
        if (got[i].dtype() == f32) tolerance = std::max(tolerance, op->tolerance.f32);
        CHECK(test::difference(got[i], expected[i]) <= tolerance);
      }
    }
  }
  CHECK(covered > 10);
}

TEST_CASE("Results are bitwise the same for any number of threads") {
  Graph body;
  ops::Build b(body);
  const Shape shape{37, 50, 130};
  const Value x = body.input("x", {f32, shape}), y = b.unary("exp", x);
  body.set_outputs({y, b.sum(y, {}, false), b.mean(b.mul(x, x), {}, false), b.max(x, {}, false)});
  const std::vector<Array> input{random_array({f32, shape}, 3)};
  const std::vector<Array> one = run_fused(body, input, {.threads = 1});
  for (const int threads : {2, 3, 7}) {
    const std::vector<Array> many = run_fused(body, input, {.threads = threads});
    for (size_t i = 0; i < one.size(); ++i) CHECK(many[i].identical(one[i]));
  }
}

TEST_CASE("Long sums keep their accuracy") {
  // Naive summation in f32 is off by more than a percent here.
  for (const Shape& shape : {Shape{1 << 22}, Shape{1 << 20, 4}, Shape{4, 1 << 20}})
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{}, std::vector<int64_t>{0}}) {
      Graph body;
      body.set_outputs({ops::Build(body).sum(body.input("x", {f32, shape}), axes, false)});
      const Array sum = run_fused(body, std::vector<Array>{Array::full(f32, shape, 0.1)})[0];
      const double expected =
          static_cast<double>(0.1f) * static_cast<double>(shape.count()) / static_cast<double>(sum.count());
      double worst = 0;
      for (int64_t i = 0; i < sum.count(); ++i) worst = std::max(worst, std::abs(sum.at(i) / expected - 1));
      CHECK(worst < 4e-6);
    }
}

TEST_CASE("Maxima, minima and their positions: first of equals, NaN first of all") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  Array rows(f32, {5, 40});
  for (int64_t i = 0; i < rows.count(); ++i) rows.set(i, static_cast<double>(i % 7));
  rows.set(40 + 20, nan), rows.set(40 + 33, nan);
  for (int64_t i = 80; i < 120; ++i) rows.set(i, -inf);
  for (int64_t i = 120; i < 160; ++i) rows.set(i, inf);
  for (const std::vector<int64_t>& axes : {std::vector<int64_t>{0}, std::vector<int64_t>{1}}) {
    Graph body;
    const Value x = body.input("x", {f32, {5, 40}});
    std::vector<Value> outputs;
    for (const char* op : {"max", "min", "argmax", "argmin"})
      outputs.push_back(body.add(op, {x}, {{"axes", axes}}));
    body.set_outputs(outputs);
    const std::vector<Array> input{rows}, expected = ref::evaluate(body, input), got = run_fused(body, input);
    for (size_t i = 0; i < got.size(); ++i) CHECK(test::difference(got[i], expected[i]) == 0);
  }
}

TEST_CASE("Rows of a few elements are reduced, a lane a row") {
  for (const Shape& shape :
       {Shape{16, 2}, Shape{256, 2}, Shape{1000, 4}, Shape{3, 37, 3}, Shape{15, 2}, Shape{40, 5}}) {
    CAPTURE(shape.str());
    Graph body;
    ops::Build b(body);
    const Value x = body.input("x", {f32, shape});
    const std::vector<int64_t> last = {shape.rank() - 1};
    std::vector<Value> outputs = {b.unary("exp", x), b.sum(b.unary("exp", x), last, true)};
    for (const char* op : {"max", "min", "argmax", "argmin"})
      outputs.push_back(body.add(op, {x}, {{"axes", last}}));
    body.set_outputs(outputs);
    Array rows = random_array({f32, shape}, 7, -1, 1);
    rows.set(5, std::numeric_limits<double>::quiet_NaN());
    const std::vector<Array> input{rows}, expected = ref::evaluate(body, input), got = run_fused(body, input);
    for (size_t i = 0; i < got.size(); ++i) CHECK(test::difference(got[i], expected[i]) < 1e-6);
  }
}

TEST_CASE("Reductions of long rows in parts find first positions") {
  Graph body;
  const Shape shape{2, 400000};
  const Value x = body.input("x", {f32, shape});
  body.set_outputs({body.add("argmax", {x}, {{"axes", std::vector<int64_t>{1}}}),
                    body.add("argmin", {x}, {{"axes", std::vector<int64_t>{1}}})});
  Array input(f32, shape);
  for (const int64_t i : {300001, 300002, 399999, 400000 + 131072, 400000 + 131073}) input.set(i, 1);
  for (const int64_t i : {200000, 250000, 400000 + 399999}) input.set(i, -1);
  const std::vector<Array> got = run_fused(body, std::vector<Array>{input});
  CHECK(got[0].to_doubles() == std::vector<double>{300001, 131072});
  CHECK(got[1].to_doubles() == std::vector<double>{200000, 399999});
}

TEST_CASE("A result may take the place of an operand that is read where it is written, and of no other") {
  Graph body;
  ops::Build b(body);
  const Value p = body.input("p", {f32, {100}}), g = body.input("g", {f32, {100}}),
              r = body.input("r", {f32, {100}}), half = body.input("h", {bf16, {100}});
  const Value reversed = body.add("slice", {b.add(r, r)},
                                  {{"starts", std::vector<int64_t>{0}}, {"ends", std::vector<int64_t>{30}}});
  const Value padded =
      body.add("pad", {reversed}, {{"low", std::vector<int64_t>{70}}, {"high", std::vector<int64_t>{0}}});
  body.set_outputs({b.sub(p, b.mul(g, 0.1)), b.add(b.add(padded, g), b.cast(half, f32))});
  const auto kernel = build_fused(body);
  CHECK(kernel->can_alias(0, 0));
  CHECK(kernel->can_alias(1, 0));
  CHECK(kernel->can_alias(1, 1));
  CHECK_FALSE(kernel->can_alias(2, 1));
  CHECK_FALSE(kernel->can_alias(3, 1));
}

TEST_CASE("Large results may stand at any address") {
  const int64_t n = 4000003;
  Graph body;
  ops::Build b(body);
  const Value x = body.input("x", {f32, {n}});
  body.set_outputs({b.add(x, 1)});
  const auto kernel = build_fused(body);
  std::vector<float> memory(static_cast<size_t>(n) + 32, 0.5f);
  ThreadPool pool(2);
  for (const size_t shift : {0, 1, 7}) {
    void* operand = memory.data() + shift;
    Array result(f32, {n + 32});
    void* target = result.as<float>().data() + shift;
    kernel->run(&operand, &target, nullptr, pool);
    CHECK(result.at(static_cast<int64_t>(shift)) == 1.5);
    CHECK(result.at(static_cast<int64_t>(shift) + n - 1) == 1.5);
    CHECK(result.at(static_cast<int64_t>(shift) + n) == 0);
  }
}

TEST_CASE("Reductions of one element each read what lies in another layout") {
  for (const char* op : {"sum", "max", "argmax"})
    for (const Shape& shape : {Shape{1, 16, 20, 20}, Shape{1, 33, 17, 40}}) {
      Graph body;
      ops::Build b(body);
      const Value y = b.add(body.input("x", {f32, shape}), 1.0);
      body.set_outputs({y, body.add(op, {y}, {{"axes", std::vector<int64_t>{0}}})});
      check(body, 0);
      check(body, 0, {.result_layouts = {Layout{0, 2, 3, 1}, {}}});
    }
}

TEST_CASE("Transposes and changes of layout of any size and dtype move every element") {
  const Layout last{0, 2, 3, 1};
  for (const DType dtype : {f32, u8, bf16, f64, boolean})
    for (const Shape& shape :
         {Shape{2, 16, 4, 8}, Shape{1, 33, 5, 7}, Shape{3, 20, 16, 1}, Shape{2, 3, 9, 11}}) {
      Graph body;
      ops::Build b(body);
      body.set_outputs({b.transpose(body.input("x", {dtype, shape}), {3, 1, 0, 2})});
      check(body, 0);
      check(body, 0, {.operand_layouts = {last}});
      check(body, 0, {.result_layouts = {last}});
      Graph lone;
      lone.set_outputs({lone.add("copy", {lone.input("x", {dtype, shape})})});
      check(lone, 0, {.operand_layouts = {last}});
      check(lone, 0, {.result_layouts = {last}});
    }
}

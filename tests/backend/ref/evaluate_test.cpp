#include "backend/ref/evaluate.h"

#include <doctest/doctest.h>
#include <limits>

#include <millrace/error.h>

#include "backend/ref/scalar.h"
#include "ops/build.h"

using namespace millrace;

namespace {

Array range(DType dtype, const Shape& shape) {
  Array array(dtype, shape);
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, static_cast<double>(i));
  return array;
}

}  // namespace

TEST_CASE("ref evaluates a graph with a composite, a broadcast and a reduction") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {2, 3}}), y = graph.input("y", {f32, {3}});
  const Value r = graph.add("relu", {b.add(x, y)});
  graph.set_outputs({b.sum(r, {1}, false), r});
  const Array inputs[] = {range(f32, {2, 3}), Array::of(f32, {3}, std::vector<double>{-1, 1, -7})};
  const std::vector<Array> out = ref::evaluate(graph, inputs);
  CHECK(out[0].to_doubles() == std::vector<double>{2, 7});
  CHECK(out[1].to_doubles() == std::vector<double>{0, 2, 0, 2, 5, 0});
}

TEST_CASE("ref rounds to the dtype after each operator") {
  Graph graph;
  const Value x = graph.input("x", {bf16, {}});
  const Value y = graph.add("add", {x, x});
  graph.set_outputs({graph.add("add", {y, x})});
  const Array inputs[] = {Array::scalar(bf16, 1.0078125)};
  CHECK(ref::evaluate(graph, inputs)[0].at(0) ==
        doctest::Approx(3.03125).epsilon(1e-9));  // 3.0234375 is between
}

TEST_CASE("ref refuses inputs of another type by name") {
  Graph graph;
  const Value x = graph.input("picture", {f32, {2}});
  graph.set_outputs({x});
  const Array inputs[] = {Array(f32, {3})};
  CHECK_THROWS_WITH_AS(ref::evaluate(graph, inputs), "input 'picture' is f32[3], the graph expects f32[2]",
                       TypeError);
}

TEST_CASE("scalar integers wrap, divide by zero to zero and shift logically") {
  using namespace ref;
  const auto binary = [](ScalarOp op, DType dtype, int64_t a, int64_t b) {
    return static_cast<int64_t>(apply_binary(op, dtype, integer_cell(dtype, a), integer_cell(dtype, b)).u);
  };
  CHECK(binary(ScalarOp::add, i8, 127, 1) == -128);
  CHECK(binary(ScalarOp::mul, u8, 16, 17) == 16);
  CHECK(binary(ScalarOp::div, i32, -7, 2) == -3);
  CHECK(binary(ScalarOp::rem, i32, -7, 2) == -1);
  CHECK(binary(ScalarOp::div, i32, 5, 0) == 0);
  CHECK(binary(ScalarOp::rem, i64, 5, 0) == 0);
  CHECK(binary(ScalarOp::div, i64, std::numeric_limits<int64_t>::min(), -1) ==
        std::numeric_limits<int64_t>::min());
  CHECK(binary(ScalarOp::shift_right, i8, -1, 4) == 15);
  CHECK(binary(ScalarOp::shift_left, u32, 3, 31) == 0x80000000);
  CHECK(binary(ScalarOp::less, i32, -1, 1) == 1);
  CHECK(binary(ScalarOp::min, i32, -1, 1) == -1);
  CHECK(binary(ScalarOp::max, i32, -1, 1) == 1);
  CHECK(binary(ScalarOp::less, u8, 255, 1) == 0);
  CHECK(apply_unary(ScalarOp::neg, i8, integer_cell(i8, -128)).u == integer_cell(i8, -128).u);
}

TEST_CASE("scalar casts saturate from floats, wrap between integers and round to narrow floats") {
  using namespace ref;
  const auto to_int = [](DType dtype, double value) {
    return static_cast<int64_t>(apply_cast(f64, dtype, {.f = value}).u);
  };
  CHECK(to_int(i8, 300) == 127);
  CHECK(to_int(i8, -300) == -128);
  CHECK(to_int(u8, -3.5) == 0);
  CHECK(to_int(i32, -2.9) == -2);
  CHECK(to_int(i64, 1e30) == std::numeric_limits<int64_t>::max());
  CHECK(to_int(i64, std::numeric_limits<double>::quiet_NaN()) == 0);
  CHECK(to_int(boolean, 0.25) == 1);
  CHECK(static_cast<int64_t>(apply_cast(i32, i8, integer_cell(i32, 200)).u) == -56);
  CHECK(apply_cast(i32, boolean, integer_cell(i32, 256)).u == 1);
  CHECK(apply_cast(f64, bf16, {.f = 1.001}).f == 1.0);
}

#include <array>
#include <cmath>
#include <doctest/doctest.h>

#include <millrace/random.h>

#include "backend/ref/evaluate.h"

using namespace millrace;

namespace {

Array draw(std::string_view op, int64_t count, std::array<int64_t, 2> key, Attributes attributes = {}) {
  Graph graph;
  const Value input = graph.input("key", {i64, {2}});
  attributes.set("shape", Shape{count});
  graph.set_outputs({graph.add(op, {input}, attributes)});
  Array array(i64, {2});
  array.set_int(0, key[0]);
  array.set_int(1, key[1]);
  return ref::evaluate(graph, std::array{array})[0];
}

/// The mean of f over the elements.
template <typename F>
double mean(const Array& x, F f) {
  double total = 0;
  for (int64_t i = 0; i < x.count(); ++i) total += f(x.at(i));
  return total / static_cast<double>(x.count());
}

}  // namespace

TEST_CASE("a random number depends on seed, step, stream and position, as documented") {
  const Array x = draw("random_uniform", 3, {0x123456789ab, 42}, {{"stream", int64_t{7}}});
  for (uint32_t i = 0; i < 3; ++i) {
    const uint32_t word = philox({i, 0, 7, 42}, {0x456789ab, 0x123})[0];
    CHECK(x.at(i) == (word >> 8) * 0x1p-24);
  }
  const Array same = draw("random_uniform", 100, {1, 2});
  CHECK(same.identical(draw("random_uniform", 100, {1, 2})));
  CHECK(!same.identical(draw("random_uniform", 100, {2, 2})));
  CHECK(!same.identical(draw("random_uniform", 100, {1, 3})));
  CHECK(!same.identical(draw("random_uniform", 100, {1, 2}, {{"stream", int64_t{1}}})));
}

TEST_CASE("uniform numbers fill [0, 1) evenly") {
  for (const DType dtype : {f32, f64, bf16, f16}) {
    const Array x = draw("random_uniform", 20000, {5, 0}, {{"dtype", dtype}});
    CAPTURE(dtype.name());
    CHECK(mean(x, [](double v) { return v >= 0 && v < 1; }) == 1);
    CHECK(mean(x, [](double v) { return v; }) == doctest::Approx(0.5).epsilon(0.02));
    CHECK(mean(x, [](double v) { return v * v; }) == doctest::Approx(1.0 / 3).epsilon(0.03));
  }
}

TEST_CASE("normal numbers have the moments of a normal distribution") {
  for (const DType dtype : {f32, f64}) {
    const Array x = draw("random_normal", 40000, {6, 1}, {{"dtype", dtype}});
    CHECK(std::fabs(mean(x, [](double v) { return v; })) < 0.02);
    CHECK(mean(x, [](double v) { return v * v; }) == doctest::Approx(1).epsilon(0.03));
    CHECK(std::fabs(mean(x, [](double v) { return v * v * v; })) < 0.08);
    CHECK(mean(x, [](double v) { return v * v * v * v; }) == doctest::Approx(3).epsilon(0.06));
    CHECK(mean(x, [](double v) { return std::fabs(v) < 1; }) == doctest::Approx(0.6827).epsilon(0.02));
  }
}

TEST_CASE("bernoulli draws are 1 as often as asked, never or always at the ends") {
  const auto frequency = [](double p) {
    return mean(draw("random_bernoulli", 20000, {7, 9}, {{"p", p}}), [](double v) { return v; });
  };
  CHECK(frequency(0) == 0);
  CHECK(frequency(1) == 1);
  CHECK(frequency(0.3) == doctest::Approx(0.3).epsilon(0.04));
}

TEST_CASE("dropout keeps the mean: what stays is divided by the share that does") {
  Graph graph;
  const Value x = graph.input("x", {f32, {20000}}), key = graph.input("key", {i64, {2}});
  graph.set_outputs({graph.add("dropout", {x, key}, {{"p", 0.2}})});
  const Array dropped =
      ref::evaluate(graph, std::vector<Array>{Array::full(f32, {20000}, 2), Array::full(i64, {2}, 3)})[0];
  CHECK(mean(dropped, [](double v) { return v == 0 || v == 2.5; }) == 1);
  CHECK(mean(dropped, [](double v) { return v; }) == doctest::Approx(2).epsilon(0.02));
}

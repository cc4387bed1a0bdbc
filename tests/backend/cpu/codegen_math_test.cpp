// Accuracy and special values of the elementary functions in compiled loop nests.
#include <bit>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>

#include "support/codegen_support.h"

using namespace millrace;

namespace {

Array run_op(const std::string& op, const std::vector<float>& values) {
  Graph graph;
  const Value x = graph.input("x", {f32, {static_cast<int64_t>(values.size())}});
  graph.set_outputs({graph.add(op, {x})});
  Array input(f32, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), input.as<float>().begin());
  return run_fused(graph, std::vector<Array>{input})[0];
}

/// Distance of a result from the exact value, in units of the last place there.
double ulps(float result, double exact) {
  if (std::isnan(exact) && std::isnan(result)) return 0;
  const auto nearest = static_cast<float>(exact);
  if (result == nearest) return 0;
  if (std::isinf(nearest) || std::isinf(result) || std::isnan(result)) return 1e9;
  int exponent;
  std::frexp(nearest, &exponent);
  return std::fabs(result - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

double worst(const std::string& op, const std::function<double(double)>& exact, float low, float high) {
  std::vector<float> values;
  for (int i = 0; i <= 200000; ++i) values.push_back(low + (high - low) * static_cast<float>(i) / 200000);
  const Array got = run_op(op, values);
  double error = 0;
  for (size_t i = 0; i < values.size(); ++i)
    error = std::max(error, ulps(got.as<float>()[i], exact(values[i])));
  return error;
}

const auto f_exp = [](double x) { return std::exp(x); };
const auto f_log = [](double x) { return std::log(x); };
const auto f_tanh = [](double x) { return std::tanh(x); };
const auto f_erf = [](double x) { return std::erf(x); };
const auto f_sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };

}  // namespace

TEST_CASE("Elementary functions are accurate to a few units in the last place") {
  CHECK(worst("exp", f_exp, -104, 89) <= 1.1);
  CHECK(worst("exp", f_exp, -1, 1) <= 1.1);
  CHECK(worst("log", f_log, 1e-38f, 1e-30f) <= 1.1);
  CHECK(worst("log", f_log, 0.5f, 2) <= 1.1);
  CHECK(worst("log", f_log, 1, 1e30f) <= 1.1);
  CHECK(worst("tanh", f_tanh, -10, 10) <= 2.5);
  CHECK(worst("tanh", f_tanh, -0.7f, 0.7f) <= 2.5);
  CHECK(worst("erf", f_erf, -6, 6) <= 4);
  CHECK(worst("erf", f_erf, -1, 1) <= 4);
  CHECK(worst("sigmoid", f_sigmoid, -87.3f, 90) <= 2.5);  // below, results are not normal
  CHECK(worst("sigmoid", f_sigmoid, -1, 1) <= 2.5);
  CHECK(worst(
            "sin", [](double x) { return std::sin(x); }, -1e4f, 1e4f) <= 1.1);
}

TEST_CASE("Elementary functions of every exponent") {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0xFFFF0000u; bits += 0x7FFF) values.push_back(std::bit_cast<float>(bits));
  const auto check = [&](const std::string& op, const std::function<double(double)>& exact, double limit) {
    const Array got = run_op(op, values);
    double error = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double here = ulps(got.as<float>()[i], exact(values[i]));
      if (here > limit && error <= limit) MESSAGE(op << "(" << values[i] << ") = " << got.as<float>()[i]);
      error = std::max(error, here);
    }
    CHECK(error <= limit);
  };
  check("exp", f_exp, 1.1);
  check("log", f_log, 1.1);
  check("tanh", f_tanh, 2.5);
  check("erf", f_erf, 4);
}

TEST_CASE("Elementary functions of special values") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float odd_nan = std::bit_cast<float>(0x7FC001FFu);
  const std::vector<float> values{0.0f,    -0.0f,  inf,     -inf,     nan,   odd_nan, 1e-45f,
                                  -1e-45f, 1e-39f, 3.4e38f, -3.4e38f, 88.8f, -103.9f, -1.0f};
  const auto check = [&](const std::string& op, const std::function<double(double)>& exact) {
    const Array got = run_op(op, values);
    for (size_t i = 0; i < values.size(); ++i) {
      INFO(op << "(" << values[i] << ") = " << got.as<float>()[i]);
      CHECK(ulps(got.as<float>()[i], exact(values[i])) <= 2.5);
      const auto expected = static_cast<float>(exact(values[i]));
      if (expected == 0) CHECK(std::signbit(got.as<float>()[i]) == std::signbit(expected));
    }
  };
  check("exp", f_exp);
  check("log", f_log);
  check("tanh", f_tanh);
  check("erf", f_erf);
  check("sigmoid", f_sigmoid);
  check("sqrt", [](double x) { return std::sqrt(x); });
}

TEST_CASE("A result does not depend on where its element stands") {
  // Every length puts the elements at other lanes and tails.
  Graph whole;
  const auto body = [](Graph& graph, int64_t n) {
    const Value x = graph.input("x", {f32, {n}});
    const Value e = graph.add("exp", {x}), t = graph.add("tanh", {x});
    graph.set_outputs(
        {graph.add("add", {graph.add("mul", {e, t}), graph.add("erf", {graph.add("mul", {x, t})})})});
  };
  body(whole, 1003);
  const Array input = random_array({f32, {1003}}, 5, -3, 3);
  const Array all = run_fused(whole, std::vector<Array>{input})[0];
  for (const int64_t n : {1, 7, 16, 31, 33, 500}) {
    Graph part;
    body(part, n);
    for (int64_t start : {int64_t{0}, int64_t{11}, 1003 - n}) {
      Array piece(f32, {n});
      std::memcpy(piece.data(), input.as<float>().data() + start, static_cast<size_t>(n) * 4);
      const Array got = run_fused(part, std::vector<Array>{piece})[0];
      CHECK(std::memcmp(got.data(), all.as<float>().data() + start, static_cast<size_t>(n) * 4) == 0);
    }
  }
}

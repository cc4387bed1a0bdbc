#include <bit>
#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <vector>

#include <millrace/operator.h>
#include <millrace/program.h>

using namespace millrace;

namespace {

/// `count` roundings of each of the values, by a back end; as bf16 bits, value by value.
std::vector<std::vector<uint16_t>> rounded(const std::string& target, const std::vector<float>& values,
                                           int64_t count, int64_t part) {
  const Shape shape{static_cast<int64_t>(values.size()), count};
  Graph graph;
  const Value x = graph.input("x", {f32, shape}), key = graph.input("key", {i64, {2}});
  const Value bits = graph.add("random_bits", {key}, {{"shape", shape}});
  graph.set_outputs({graph.add("round_stochastic", {x, bits}, {{"part", part}})});
  Program program = Program::compile(graph, {.target = target});
  for (int64_t i = 0; i < program.input(0).count(); ++i)
    program.input(0).as<float>()[i] = values[static_cast<size_t>(i / count)];
  program.input(1).set_int(0, 17);
  program.run();
  const auto all = program.output(0).as<uint16_t>();
  std::vector<std::vector<uint16_t>> result;
  for (size_t v = 0; v < values.size(); ++v) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(v) * count;
    result.emplace_back(begin, begin + count);
  }
  return result;
}

}  // namespace

TEST_CASE("stochastic rounding takes one of the two neighbours, and its mean is the value") {
  // Of both signs, next to powers of two, small and large.
  const std::vector<float> values = {1.001f, -1.001f,  0.99999f, -3.1415926f, 1.0039062f - 1e-6f,
                                     1e-30f, 2.99e37f, 255.9f,   -0.00017f,   1.0f + 0x1p-23f};
  constexpr int64_t count = 20000;
  for (const std::string target : {"ref", "cpu"})
    for (const int64_t part : {0, 3}) {
      CAPTURE(target);
      CAPTURE(part);
      const auto results = rounded(target, values, count, part);
      for (size_t v = 0; v < values.size(); ++v) {
        CAPTURE(values[v]);
        const uint32_t bits = std::bit_cast<uint32_t>(values[v]);
        const auto low = static_cast<uint16_t>(bits >> 16);  // towards zero
        const double step = double{bf16_to_float(low + 1)} - bf16_to_float(low);
        double mean = 0;
        for (const uint16_t r : results[v]) {
          REQUIRE((r == low || r == low + 1));
          mean += bf16_to_float(r) / double{count};
        }
        // Five standard deviations of the mean of `count` draws.
        CHECK(std::abs(mean - values[v]) < 5 * std::abs(step) * 0.5 / std::sqrt(double{count}));
      }
    }
}

TEST_CASE("stochastic rounding keeps what bf16 holds, infinities and NaN") {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0.0f, -0.0f, 1.0f, -2.5f, 3.3895314e38f, inf, -inf, std::nanf("")};
  for (const std::string target : {"ref", "cpu"}) {
    CAPTURE(target);
    const auto results = rounded(target, values, 100, 1);
    for (size_t v = 0; v < values.size(); ++v)
      for (const uint16_t r : results[v]) {
        CAPTURE(values[v]);
        if (std::isnan(values[v]))
          CHECK(std::isnan(bf16_to_float(r)));
        else
          CHECK(r == std::bit_cast<uint32_t>(values[v]) >> 16);
      }
  }
}

TEST_CASE("the parts of the random bits round independently") {
  const std::vector<float> values = {1.0f + 0x1p-8f};  // halfway
  constexpr int64_t count = 20000;
  const auto a = rounded("cpu", values, count, 0)[0], b = rounded("cpu", values, count, 2)[0];
  int64_t same = 0;
  for (size_t i = 0; i < a.size(); ++i) same += a[i] == b[i];
  CHECK(std::abs(static_cast<double>(same) / count - 0.5) < 0.02);
  CHECK(rounded("cpu", values, count, 0)[0] == a);
  CHECK(rounded("ref", values, count, 0)[0] == a);
}

// Numbers half-way between two of bf16 go to the even one, wherever numbers are rounded.
#include <bit>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <millrace/program.h>

#include "ops/build.h"

using namespace millrace;

namespace {

/// To the nearest bf16 in plain steps: up when more than half is cut off, or exactly half of an odd one.
uint16_t nearest(uint32_t bits) {
  const uint32_t rest = bits & 0xFFFF;
  const auto kept = static_cast<uint16_t>(bits >> 16);
  const bool up = rest > 0x8000 || (rest == 0x8000 && (kept & 1) != 0);
  return static_cast<uint16_t>(kept + up);
}

/// Normal f32 numbers of many exponents, around ties of odd and even neighbours. (The CPU's instruction takes
/// what is smaller for zero.)
std::vector<uint32_t> numbers() {
  std::vector<uint32_t> all;
  for (uint32_t upper = 0; upper < 0x10000; upper += 37)
    for (const uint32_t kept : {upper, upper ^ 1})
      for (const uint32_t rest : {0x0000U, 0x0001U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU})
        if ((kept & 0x7F80) != 0x7F80 && (kept & 0x7F80) != 0) all.push_back(kept << 16 | rest);
  return all;
}

}  // namespace

TEST_CASE("casts to bf16 go to the nearest number, ties to the even one") {
  const std::vector<uint32_t> bits = numbers();
  Array x(f32, {static_cast<int64_t>(bits.size())});
  for (size_t i = 0; i < bits.size(); ++i) x.as<float>()[i] = std::bit_cast<float>(bits[i]);
  const auto check = [&](const Array& result) {
    int wrong = 0;
    for (size_t i = 0; i < bits.size(); ++i) wrong += result.as<uint16_t>()[i] != nearest(bits[i]);
    CHECK(wrong == 0);
  };
  check(x.converted(bf16));
  Graph graph;
  graph.set_outputs({ops::Build(graph).cast(graph.input("x", x.type()), bf16)});
  for (const std::string target : {"ref", "cpu"}) {
    CAPTURE(target);
    Program program = Program::compile(graph, {.target = target});
    program.bind_input(0, x);
    program.run();
    check(program.output(0));
  }
}

TEST_CASE("products and convolutions that give bf16 round ties to the even number") {
  // (1 + k/128) · 1.5 is half-way between two numbers for every odd k below 43: one product a result, all
  // else zero.
  constexpr int64_t kChannels = 32, kSize = 8;
  const Shape pictures{2, kChannels, kSize, kSize};
  Array x(bf16, pictures);
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, 1 + static_cast<double>(i % 43) / 128);
  const auto check = [&](const Array& result, const std::string& what) {
    CAPTURE(what);
    int wrong = 0, ties = 0;
    for (int64_t i = 0; i < x.count(); ++i) {
      const uint32_t exact = std::bit_cast<uint32_t>(static_cast<float>(1.5 * x.at(i)));
      ties += (exact & 0xFFFF) == 0x8000;
      wrong += result.as<uint16_t>()[i] != nearest(exact);
    }
    CHECK(ties > x.count() / 3);
    CHECK(wrong == 0);
  };
  const auto run = [&](const std::string& what, const Array& left, const Array& right,
                       Attributes attributes) {
    Graph graph;
    graph.set_outputs({graph.add(what, {graph.input("x", left.type()), graph.input("w", right.type())},
                                 std::move(attributes))});
    Program program = Program::compile(graph, {.exact = true});
    program.bind_input(0, left);
    program.bind_input(1, right);
    program.run();
    return program.output(0).clone();
  };
  const auto tap = [&](int64_t groups) {  // the middle of the window, of the channel itself
    Array w(bf16, {kChannels, kChannels / groups, 3, 3});
    for (int64_t c = 0; c < kChannels; ++c) w.set((groups == 1 ? c * kChannels + c : c) * 9 + 4, 1.5);
    return w;
  };
  const std::vector<int64_t> pads{1, 1, 1, 1};
  for (const int64_t groups : {int64_t{1}, kChannels})
    check(run("conv2d", x, tap(groups), {{"pads", pads}, {"groups", groups}}),
          groups == 1 ? "convolution" : "depthwise convolution");
  const int64_t rows = x.count() / kChannels;
  Array flat(bf16, {rows, kChannels}), diagonal(bf16, {kChannels, kChannels});
  for (int64_t i = 0; i < x.count(); ++i) flat.set(i, x.at(i));
  for (int64_t c = 0; c < kChannels; ++c) diagonal.set(c * kChannels + c, 1.5);
  check(run("matmul", flat, diagonal, {}), "product");
}

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <memory>
#include <string>
#include <vector>

#include <millrace/graph.h>
#include <millrace/program.h>

#include "backend/cpu/kernels/vectors.h"
#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "base/thread_pool.h"
#include "support/cache_variable.h"
#include "support/random_graph.h"
#include "target/shared_constants.h"
#include "target/tuning_cache.h"

using namespace millrace;

namespace {

Graph convolution() {
  Graph graph;
  const Value x = graph.input("x", {f32, {8, 32, 16, 16}}), w = graph.input("w", {f32, {32, 32, 3, 3}});
  graph.set_outputs({graph.add("conv2d", {x, w}, {{"pads", std::vector<int64_t>(4, 1)}})});
  return graph;
}

/// A convolution of one picture, whose weights can be donated to an output.
Graph one_picture(int64_t channels, int64_t size) {
  Graph graph;
  const Value x = graph.input("x", {f32, {1, channels, size, size}}),
              w = graph.input("w", {f32, {channels, channels, 3, 3}});
  graph.set_outputs(
      {graph.add("conv2d", {x, w}, {{"pads", std::vector<int64_t>(4, 1)}}), graph.add("neg", {w})});
  return graph;
}

/// Has a provider stand as the fastest for one_picture(channels, size), which nobody may have measured;
/// returns the problem's name, made from that of a picture one larger.
std::string found_fastest(const std::string& provider, int64_t channels, int64_t size) {
  const auto sizes = [](int64_t n) { return std::to_string(n) + ", " + std::to_string(n); };
  std::string key = Program::compile(one_picture(channels, size + 1)).choices().begin()->first;
  REQUIRE(key.find(sizes(size + 1)) != std::string::npos);
  key.replace(key.find(sizes(size + 1)), sizes(size + 1).size(), sizes(size));
  keep_choice(key, provider);
  return key;
}

/// The providers that take convolution() on CPUs with AVX2.
const std::vector<std::string> takers = {"winograd", "gemm", "onednn"};

/// A product with a constant right side.
Graph product(int64_t rows, int64_t columns) {
  Graph graph;
  Array right(f32, {columns, columns});
  for (int64_t i = 0; i < right.count(); ++i) right.set(i, std::cos(static_cast<double>(i)));
  const Value x = graph.input("x", {f32, {rows, columns}});
  graph.set_outputs({graph.add("matmul", {x, graph.constant(right)})});
  return graph;
}

Array result_of(Program& program) {
  for (int input = 0; input < 2; ++input)
    for (int64_t i = 0; i < program.input(input).count(); ++i)
      program.input(input).set(i, std::sin(static_cast<double>(3 * i + input)));
  program.run();
  return program.output(0).clone();
}

}  // namespace

TEST_CASE("a choice by timing is recorded, and a recorded one is obeyed") {
  if (!cpu::has_avx2()) {
    MESSAGE("skipped: this CPU has no AVX2, so only one provider takes the convolution");
    return;
  }
  const Program first = Program::compile(convolution());
  REQUIRE(first.choices().size() == 1);
  const auto [key, choice] = *first.choices().begin();
  CHECK(std::ranges::find(takers, choice) != takers.end());
  for (const std::string& wanted : takers) {
    Program program = Program::compile(convolution(), {.choices = {{key, wanted}}});
    CHECK(program.explain().find(wanted + ": conv2d") != std::string::npos);
    CHECK(program.explain().find("measured slower") != std::string::npos);
    CHECK(program.choices().at(key) == wanted);
  }
  // Neither an unknown choice nor one of another problem disturbs.
  CHECK(Program::compile(convolution(), {.choices = {{key, "abacus"}, {"other", "onednn"}}})
            .choices()
            .at(key) == choice);
}

TEST_CASE("exact programs leave out algorithms that change more than the order of sums") {
  Program exact = Program::compile(convolution(), {.exact = true});
  CHECK(exact.explain().find("winograd: conv2d") == std::string::npos);
  for (const auto& [key, choice] : exact.choices()) CHECK(choice != "winograd");
  Program reference = Program::compile(convolution(), {.target = "ref"}),
          free = Program::compile(convolution());
  const Array expected = result_of(reference), close = result_of(exact), any = result_of(free);
  double exact_error = 0, any_error = 0, scale = 0;
  for (int64_t i = 0; i < expected.count(); ++i) {
    scale = std::max(scale, std::abs(expected.at(i)));
    exact_error = std::max(exact_error, std::abs(close.at(i) - expected.at(i)));
    any_error = std::max(any_error, std::abs(any.at(i) - expected.at(i)));
  }
  CHECK(exact_error < 3e-6 * scale);
  CHECK(any_error < 5e-5 * scale);
}

TEST_CASE("where scratch memory makes a training step large, its kernel is the one that takes the least") {
  if (!cpu::has_avx2()) {
    MESSAGE("skipped: this CPU has no AVX2, so only one provider takes the convolution");
    return;
  }
  // Of one small picture, Winograd's transformed weights are most of what there is.
  const Graph graph = one_picture(512, 6);
  const std::string key = found_fastest("winograd", 512, 6);
  REQUIRE(Program::compile(graph).choices() == std::map<std::string, std::string>{{key, "winograd"}});

  std::map<std::string, int64_t> bytes;
  for (const std::string& wanted : takers)
    bytes[wanted] = Program::compile(graph, {.choices = {{key, wanted}}}).arena_bytes();
  REQUIRE(bytes["winograd"] > 8 << 20);
  const Program step = Program::compile(graph, {.donations = {{1, 1}}});
  CHECK(step.choices().at(key) != "winograd");
  CHECK(step.explain().find("winograd: takes more memory") != std::string::npos);
  for (const auto& [provider, needed] : bytes)
    if (provider != "winograd") CHECK(step.arena_bytes() <= needed);
  // A resumed run computes what it computed before, however many threads it has now.
  const Program resumed = Program::compile(graph, {.donations = {{1, 1}}, .choices = {{key, "winograd"}}});
  CHECK(resumed.choices().at(key) == "winograd");
}

TEST_CASE("which kernel takes too much memory does not depend on the number of threads") {
  if (!cpu::has_avx2()) {
    MESSAGE("skipped: this CPU has no AVX2, so only one provider takes the convolution");
    return;
  }
  // Winograd's transformed weights are little here, what it takes for 64 threads is much.
  const std::string key = found_fastest("winograd", 128, 101);
  for (const int threads : {1, 64}) {
    use_cpus(threads);
    const Program step = Program::compile(one_picture(128, 101), {.donations = {{1, 1}}});
    use_cpus(0);
    CHECK(step.choices().at(key) == "winograd");
  }
}

TEST_CASE("of kernels nearly as fast that one is taken whose form of the weights is there already") {
  if (!cpu::has_avx512()) {
    MESSAGE("skipped: this CPU has no AVX-512, so only one provider takes the product");
    return;
  }
  constexpr int64_t columns = 1017;  // which no other test has
  const auto key_of = [&](int64_t rows) {
    std::string key = Program::compile(product(77, columns)).choices().begin()->first;
    REQUIRE(key.find("[77, ") != std::string::npos);
    return key.replace(key.find("[77, "), 5, "[" + std::to_string(rows) + ", ");
  };
  keep_choice(key_of(96), "gemm,onednn");
  keep_choice(key_of(128), "onednn,gemm");
  keep_choice(key_of(160), "onednn");
  const auto choice = [&](const Program& program) { return program.choices().begin()->second; };
  const auto few = std::make_unique<Program>(Program::compile(product(96, columns)));
  CHECK(choice(*few) == "gemm");
  const int64_t once = shared_constant_bytes();
  {
    const Program more = Program::compile(product(128, columns));
    CHECK(choice(more) == "gemm");
    CHECK(more.explain().find("onednn: would pack the weights once more") != std::string::npos);
    CHECK(shared_constant_bytes() == once);
    // What is recorded holds, and so does what is much faster.
    CHECK(choice(Program::compile(product(128, columns), {.choices = {{key_of(128), "onednn"}}})) ==
          "onednn");
    CHECK(choice(Program::compile(product(160, columns))) == "onednn");
  }
}

TEST_CASE("without a form of the weights the fastest kernel is taken") {
  if (!cpu::has_avx512()) return;
  std::string key = Program::compile(product(77, 1019)).choices().begin()->first;
  key.replace(key.find("[77, "), 5, "[128, ");
  keep_choice(key, "onednn,gemm");
  CHECK(Program::compile(product(128, 1019)).choices().at(key) == "onednn");
}

TEST_CASE("problems that are alike, but not for all providers, have choices of their own") {
  // Rounded up, the sizes are the same; the smaller one alone is small enough for all kernels.
  for (const bool small_first : {true, false}) {
    const testing::CacheVariable cache;
    Graph graph;
    std::vector<Value> outputs;
    std::vector<Array> inputs;
    for (const int64_t side : {small_first ? 300 : 340, small_first ? 340 : 300}) {
      Array weight(f32, {side, side}), x(f32, {side, side});
      for (int64_t i = 0; i < weight.count(); ++i) {
        weight.set(i, static_cast<double>(i * 7 % 23) / 23 - 0.5);
        x.set(i, static_cast<double>(i * 5 % 19) / 19 - 0.5);
      }
      outputs.push_back(
          graph.add("matmul", {graph.input(fmt::format("x{}", side), x.type()), graph.constant(weight)}));
      inputs.push_back(x);
    }
    graph.set_outputs(outputs);
    Program program = Program::compile(graph, {.choose_alike = true});
    for (int i = 0; i < 2; ++i) program.bind_input(i, inputs[static_cast<size_t>(i)]);
    program.run();
    const std::vector<Array> right = ref::evaluate(graph, inputs);
    for (int i = 0; i < 2; ++i)
      CHECK(test::difference(program.output(i), right[static_cast<size_t>(i)]) < 1e-4);
  }
}

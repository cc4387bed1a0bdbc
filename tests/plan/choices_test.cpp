#include <cmath>
#include <doctest/doctest.h>

#include <millrace/graph.h>
#include <millrace/program.h>

#include "backend/cpu/kernels/vectors.h"
#include "base/thread_pool.h"
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

Array result_of(Program& program) {
  for (int input = 0; input < 2; ++input)
    for (int64_t i = 0; i < program.input(input).count(); ++i)
      program.input(input).set(i, std::sin(static_cast<double>(3 * i + input)));
  program.run();
  return program.output(0).clone();
}

}  // namespace

TEST_CASE("a choice by timing is recorded, and a recorded one is obeyed") {
  if (!cpu::has_avx512()) {
    MESSAGE("skipped: this CPU has no AVX-512, so only one provider takes the convolution");
    return;
  }
  const Program first = Program::compile(convolution());
  REQUIRE(first.choices().size() == 1);
  const auto [key, choice] = *first.choices().begin();
  CHECK((choice == "winograd" || choice == "gemm" || choice == "onednn"));
  for (const std::string wanted : {"winograd", "gemm", "onednn"}) {
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
  if (!cpu::has_avx512()) {
    MESSAGE("skipped: this CPU has no AVX-512, so only one provider takes the convolution");
    return;
  }
  // Of one small picture, Winograd's transformed weights are most of what there is.
  const Graph graph = one_picture(512, 6);
  const std::string key = found_fastest("winograd", 512, 6);
  REQUIRE(Program::compile(graph).choices() == std::map<std::string, std::string>{{key, "winograd"}});

  std::map<std::string, int64_t> bytes;
  for (const std::string wanted : {"winograd", "gemm", "onednn"})
    bytes[wanted] = Program::compile(graph, {.choices = {{key, wanted}}}).arena_bytes();
  REQUIRE(bytes["winograd"] > 8 << 20);
  const Program step = Program::compile(graph, {.donations = {{1, 1}}});
  CHECK(step.choices().at(key) != "winograd");
  CHECK(step.explain().find("winograd: takes more memory") != std::string::npos);
  CHECK(step.arena_bytes() <= std::min(bytes["gemm"], bytes["onednn"]));
  // A resumed run computes what it computed before, however many threads it has now.
  const Program resumed = Program::compile(graph, {.donations = {{1, 1}}, .choices = {{key, "winograd"}}});
  CHECK(resumed.choices().at(key) == "winograd");
}

TEST_CASE("which kernel takes too much memory does not depend on the number of threads") {
  if (!cpu::has_avx512()) {
    MESSAGE("skipped: this CPU has no AVX-512, so only one provider takes the convolution");
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

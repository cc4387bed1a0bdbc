#include "target/device.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <thread>
#include <vector>

#include <millrace/device.h>
#include <millrace/error.h>
#include <millrace/graph.h>
#include <millrace/program.h>
#include <millrace/random.h>
#include <millrace/session.h>

#include "base/thread_pool.h"

using namespace millrace;

namespace {

/// Devices of these tests, once.
void add_test_devices() {
  static const bool added = [] {
    add_device({.name = "three", .threads = 3});
    add_device({.name = "one", .threads = 1});
    add_device({.name = "plain", .target = "ref"});
    return true;
  }();
  (void)added;
}

Array device_numbers(const Shape& shape, uint64_t seed) {
  Array array(f32, shape);
  RandomStream random(11, 1, seed);
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, random.uniform() - 0.5);
  return array;
}

/// Products, a convolution, a softmax, sums: kernels of several providers.
Graph device_graph() {
  Graph graph;
  const Value x = graph.input("x", {f32, {64, 128}}), p = graph.input("p", {f32, {4, 32, 14, 14}});
  const Value y = graph.add("matmul", {x, graph.constant(device_numbers({128, 96}, 1))});
  const Value q = graph.add("conv2d", {p, graph.constant(device_numbers({64, 32, 3, 3}, 2))},
                            {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  graph.set_outputs({graph.add("softmax", {y}, {{"axis", int64_t{1}}}), graph.add("tanh", {q})}, {"y", "q"});
  return graph;
}

std::vector<Array> run_on(const std::string& device, const std::vector<Array>& inputs) {
  Program program = Program::compile(device_graph(), {.target = device});
  CHECK(program.executable()->device() == device);
  for (size_t i = 0; i < inputs.size(); ++i)
    program.bind_input(static_cast<int>(i), to_device(inputs[i], device));
  program.run();
  std::vector<Array> results;
  for (int o = 0; o < program.output_count(); ++o) {
    // "ref" uses the host's memory, too.
    CHECK(device_of(program.output(o)) == (device == "ref" ? "cpu" : device));
    results.push_back(to_device(program.output(o), "cpu"));
    CHECK(device_of(results.back()) == "cpu");
  }
  return results;
}

}  // namespace

TEST_CASE("devices in one process give the same results") {
  add_test_devices();
  const std::vector<Array> inputs = {device_numbers({64, 128}, 3), device_numbers({4, 32, 14, 14}, 4)};
  const std::vector<Array> right = run_on("cpu", inputs);
  // Other threads, the same bits.
  const std::vector<Array> three = run_on("three", inputs);
  for (size_t i = 0; i < right.size(); ++i) CHECK(three[i].identical(right[i]));
  for (const char* reference : {"ref", "plain"}) {
    const std::vector<Array> plain = run_on(reference, inputs);
    for (size_t i = 0; i < right.size(); ++i)
      for (int64_t k = 0; k < right[i].count(); ++k)
        REQUIRE(plain[i].at(k) == doctest::Approx(right[i].at(k)).epsilon(1e-4));
  }
  CHECK(device_named("three").context().threads().threads() == 3);
  CHECK(device_named("one").context().threads().threads() == 1);
  CHECK(&device_named("cpu").context().threads() == &ThreadPool::global());
}

TEST_CASE("devices run at the same time") {
  add_test_devices();
  const std::vector<Array> inputs = {device_numbers({64, 128}, 3), device_numbers({4, 32, 14, 14}, 4)};
  const std::vector<Array> right = run_on("cpu", inputs);
  std::vector<std::thread> threads;
  std::vector<int> same(4);
  for (size_t t = 0; t < same.size(); ++t)
    threads.emplace_back([&, t] {
      Program program = Program::compile(device_graph(), {.target = t % 2 ? "three" : "cpu"});
      for (int i = 0; i < 10; ++i) {
        program.bind_input(0, inputs[0]);  // the host's memory is read by all
        program.bind_input(1, inputs[1]);
        program.run();
        same[t] += program.output(1).identical(right[1]);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const int count : same) CHECK(count == 10);
}

TEST_CASE("arrays know their device, and move") {
  add_test_devices();
  const Array here = device_numbers({5, 7}, 5);
  CHECK(device_of(here) == "cpu");
  CHECK(to_device(here, "cpu").shares_memory(here));
  {
    const Array there = to_device(here, "three");
    CHECK(device_of(there) == "three");
    CHECK_FALSE(there.shares_memory(here));
    CHECK(there.identical(here));
    CHECK(to_device(there, "three").shares_memory(there));
    const Array further = to_device(there, "plain");
    CHECK(device_of(further) == "plain");
    CHECK(to_device(further, "cpu").identical(here));
    const Array view = there.reshaped({35});
    CHECK(device_of(view) == "three");
    // A program does not read what lies on another device.
    Program program = Program::compile(device_graph());
    CHECK_THROWS_AS(program.bind_input(0, to_device(device_numbers({64, 128}, 3), "three")), TypeError);
  }
  CHECK(to_device(Array(Type{f32, {2}}, nullptr, nullptr), "three").empty());
  CHECK_THROWS_AS((void)to_device(here, "nowhere"), InputError);
}

TEST_CASE("devices are added once, of targets that there are") {
  add_test_devices();
  const std::vector<std::string> names = devices();
  for (const char* name : {"cpu", "ref", "three", "plain"})
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  CHECK_THROWS_AS(add_device({.name = "three"}), InputError);
  CHECK_THROWS_AS(add_device({.name = "cpu"}), InputError);
  CHECK_THROWS_AS(add_device({.name = "two words"}), InputError);
  CHECK_THROWS_AS(add_device({.name = "four", .target = "tpu"}), InputError);
  CHECK_THROWS_AS(add_device({.name = "four", .target = "three"}), InputError);
  CHECK_THROWS_AS(add_device({.name = "four", .threads = -1}), InputError);
  CHECK_THROWS_AS((void)Program::compile(device_graph(), {.target = "gpu"}), InputError);
}

TEST_CASE("a session runs on any device") {
  add_test_devices();
  const auto session_on = [](const std::string& device) {
    SessionModel model;
    model.inputs = {{"x", {f32, {Dim::named("batch"), 16}}}};
    model.outputs = {{"y", {f32, {Dim::named("batch"), 16}}}};
    Graph graph;
    graph.set_outputs({graph.add("tanh", {graph.input("x", model.inputs[0].type)})}, {"y"});
    model.graph = [graph](const Bindings&) { return graph; };
    model.independent = {"batch"};
    model.compile.target = device;
    return Session(std::move(model));
  };
  const Array rows = device_numbers({5, 16}, 6);
  const Array right = session_on("cpu").run({{rows}})[0];
  CHECK(session_on("three").run({{rows}})[0].identical(right));
  const Array plain = session_on("plain").run({{rows}})[0];
  for (int64_t i = 0; i < rows.count(); ++i) CHECK(plain.at(i) == doctest::Approx(right.at(i)).epsilon(1e-6));
}

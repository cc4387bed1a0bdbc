#include <cstdlib>
#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/program.h>

#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "base/thread_pool.h"
#include "ops/build.h"
#include "support/codegen_support.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

std::vector<Array> run(const Graph& graph, const std::vector<Array>& inputs, const CompileOptions& options) {
  Program program = Program::compile(graph, options);
  // Twice: a replay must not depend on what the first run left behind.
  test::run(program, inputs);
  return test::run(program, inputs);
}

}  // namespace

TEST_CASE("random graphs give the same on cpu, with and without passes, as on ref") {
  const char* more = std::getenv("MILLRACE_FUZZ_GRAPHS");
  const int graphs = more ? std::atoi(more) : 60;
  for (int seed = 1; seed <= graphs; ++seed) {
    CAPTURE(seed);
    const test::RandomGraph g = test::random_graph(static_cast<uint64_t>(seed), 4 + seed % 40);
    const std::vector<Array> expected = ref::evaluate(g.graph, g.inputs);
    for (const char* target : {"cpu", "ref"}) {
      CAPTURE(target);
      CompileOptions options;
      options.target = target;
      CHECK(test::difference(run(g.graph, g.inputs, options), expected) < 2e-4);
    }
    if (seed % 10 == 0) {
      for (const char* pass : {"inline", "simplify", "cse", "sparse", "dce", "fuse"}) {
        CAPTURE(pass);
        if (std::string_view(pass) == "inline") continue;  // composites need it; every other pass is optional
        setenv("MILLRACE_DISABLE", pass, 1);
        const std::vector<Array> found = run(g.graph, g.inputs, {});
        unsetenv("MILLRACE_DISABLE");
        CHECK(test::difference(found, expected) < 2e-4);
      }
    }
  }
}

TEST_CASE("a long product of constants is folded by kernels of the device, not by the reference back end") {
  const Type side(f32, {400, 400}), heads(f32, {1, 2, 512, 64});  // 0.13 GFLOP each
  for (const auto& [op, type] : {std::pair{"matmul", side}, {"attention", heads}}) {
    CAPTURE(op);
    std::vector<Array> operands;
    std::vector<Value> constants, inputs;
    Graph folded, asked;
    for (int i = 0; i < (type == side ? 2 : 3); ++i) {
      operands.push_back(random_array(type, i));
      constants.push_back(folded.constant(operands.back()));
      inputs.push_back(asked.input(fmt::format("x{}", i), type));
    }
    folded.set_outputs({folded.add(op, constants)});
    asked.set_outputs({asked.add(op, inputs)});
    const Program program = Program::compile(folded);
    for (const LaunchInfo& launch : program.launches()) CHECK(launch.operation == "copy");
    const Array found = run(folded, {}, {})[0];
    CHECK(found.identical(run(asked, operands, {})[0]));
    CHECK(!found.identical(ref::evaluate(asked, operands)[0]));  // which sums in another order
  }
}

TEST_CASE("a program without inputs computes its first node too") {
  Graph graph;
  graph.set_outputs(
      {graph.add("iota", {}, {{"shape", Shape{3, 50000}}, {"axis", int64_t{1}}, {"dtype", i64}})});
  CHECK(run(graph, {}, {})[0].identical(ref::evaluate(graph, {})[0]));
}

TEST_CASE("random graphs give the same bits on any number of threads, with launches grouped") {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    CAPTURE(seed);
    const test::RandomGraph g = test::random_graph(seed + 500, 10 + static_cast<int>(seed) * 2);
    std::vector<Array> first;
    for (const int threads : {1, 2, 3}) {
      ThreadPool::set_default_threads(threads);
      const std::vector<Array> found = run(g.graph, g.inputs, {});
      if (first.empty()) first = found;
      for (size_t o = 0; o < first.size(); ++o) CHECK(found[o].identical(first[o]));
    }
    ThreadPool::set_default_threads(0);
  }
}

TEST_CASE("a donated output overwrites its input, whatever the order of readers") {
  Graph graph;
  ops::Build b(graph);
  const Value p = graph.input("p", {f32, {100}}), g = graph.input("g", {f32, {100}});
  const Value updated = b.sub(p, b.mul(g, 0.5));
  const Value product = b.sum(b.mul(p, g), {}, false);  // must see the old p
  graph.set_outputs({updated, product});
  CompileOptions options;
  options.donations = {{0, 0}};
  Program program = Program::compile(graph, options);
  for (int i = 0; i < 100; ++i) {
    program.input(0).set(i, i);
    program.input(1).set(i, 2);
  }
  double expected = 0;
  for (int step = 0; step < 3; ++step) {
    expected = 0;
    for (int i = 0; i < 100; ++i) expected += 2 * program.input(0).at(i);
    program.run();
    CHECK(program.output(1).at(0) == doctest::Approx(expected));
  }
  for (int i = 0; i < 100; ++i) CHECK(program.input(0).at(i) == i - 3);
  CHECK(program.output(0).data() == program.input(0).data());
}

TEST_CASE("swapped donations are copied, not overwritten while still read") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {8}}), y = graph.input("y", {f32, {8}});
  graph.set_outputs({b.add(y, 1.0), b.add(x, 2.0)});
  CompileOptions options;
  options.donations = {{0, 0}, {1, 1}};
  Program program = Program::compile(graph, options);
  program.input(0).set(3, 10);
  program.input(1).set(3, 20);
  program.run();
  CHECK(program.input(0).at(3) == 21);
  CHECK(program.input(1).at(3) == 12);
}

TEST_CASE("inputs may change places, and be replaced by what another one was") {
  // Output i replaces input i: each case says by which input it is, or −1 for a computed value.
  for (const std::vector<int>& from :
       {std::vector{1, 0}, std::vector{1, 2, 0}, std::vector{-1, 0, 1}, std::vector{1, 2, -1},
        std::vector{2, 0, 1, 4, 3}, std::vector{1, 1, 1}, std::vector{0, 0, 2}}) {
    Graph graph;
    ops::Build b(graph);
    std::vector<Value> inputs, outputs;
    for (size_t i = 0; i < from.size(); ++i)
      inputs.push_back(graph.input("x" + std::to_string(i), {f32, {8}}));
    CompileOptions options;
    for (size_t i = 0; i < from.size(); ++i) {
      outputs.push_back(from[i] < 0 ? b.add(inputs[i], 100.0) : inputs[from[i]]);
      options.donations[static_cast<int>(i)] = static_cast<int>(i);
    }
    graph.set_outputs(outputs);
    Program program = Program::compile(graph, options);
    std::vector<double> now;
    for (size_t i = 0; i < from.size(); ++i) {
      now.push_back(static_cast<double>(i) + 1);
      program.input(static_cast<int>(i)).set(3, now[i]);
    }
    for (int run = 0; run < 3; ++run) {
      program.run();
      std::vector<double> next;
      for (size_t i = 0; i < from.size(); ++i) next.push_back(from[i] < 0 ? now[i] + 100 : now[from[i]]);
      now = next;
      for (size_t i = 0; i < from.size(); ++i) CHECK(program.input(static_cast<int>(i)).at(3) == now[i]);
    }
  }
}

TEST_CASE("an input or a constant may be an output, and one value may be two") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {4}});
  const Value y = b.add(x, 1.0);
  graph.set_outputs({x, graph.constant(Array::full(f32, {2}, 7)), y, y, b.reshape(y, {2, 2})});
  Program program = Program::compile(graph);
  program.input(0).set(1, 5);
  program.run();
  CHECK(program.output(0).at(1) == 5);
  CHECK(program.output(1).at(1) == 7);
  CHECK(program.output(2).at(1) == 6);
  CHECK(program.output(3).at(1) == 6);
  CHECK(program.output(4).at(1) == 6);
}

TEST_CASE("named dimensions are bound at compilation, and an unbound one is named") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {Dim::named("batch"), 3}});
  graph.set_outputs({b.mean(x, {0}, false)});
  CompileOptions options;
  options.bindings = {{"batch", 5}};
  CHECK(Program::compile(graph, options).input(0).shape() == Shape{5, 3});
  CHECK_THROWS_WITH_AS(Program::compile(graph), doctest::Contains("batch"), TypeError);
}

namespace {

Graph sum_and_product() {
  Graph graph;
  const Value x = graph.input("x", {f32, {2}}), y = graph.input("y", {f32, {2}});
  graph.set_outputs({graph.add("add", {x, y}), graph.add("mul", {x, y})});
  return graph;
}

}  // namespace

TEST_CASE("an input may be assigned another array, which is checked when the program runs") {
  Program program = Program::compile(sum_and_product());
  program.input(0) = Array::full(f32, {2}, 3);
  program.input(1) = Array::full(f32, {2}, 4);
  program.run();
  CHECK(program.output(0).at(1) == 7);
  CHECK(program.output(1).at(1) == 12);
  program.input(1) = Array(f32, {3});
  CHECK_THROWS_WITH_AS(program.run(),
                       doctest::Contains("input 'y' has type f32[2], the array given for it f32[3]"),
                       TypeError);
  program.input(1) = Array();
  CHECK_THROWS_AS(program.run(), TypeError);
  program.bind_input(1, Array({f32, {2}}, nullptr, nullptr));
  CHECK_THROWS_WITH_AS(program.run(), "input 'y' is an array without memory", TypeError);
  program.bind_input(1, Array::full(f32, {2}, 5));
  program.run();
  CHECK(program.output(0).at(0) == 8);
  CHECK_THROWS_WITH_AS(program.input(2), "there is no input 2; the program has 2", InputError);
  CHECK_THROWS_AS(program.bind_input(-1, Array(f32, {2})), InputError);
  CHECK_THROWS_AS(program.output(2), InputError);
  CHECK(program.peak_breakdown(-1).empty());
}

TEST_CASE("donations that cannot be are refused") {
  const Graph graph = sum_and_product();
  CHECK_THROWS_AS(Program::compile(graph, {.donations = {{2, 0}}}), InputError);
  CHECK_THROWS_AS(Program::compile(graph, {.donations = {{0, 2}}}), InputError);
  CHECK_THROWS_AS(Program::compile(graph, {.donations = {{-1, -1}}}), InputError);
  CHECK_THROWS_WITH_AS(Program::compile(graph, {.donations = {{0, 1}, {1, 1}}}),
                       "input 'y' is donated to two outputs", InputError);
  Graph total;
  total.set_outputs({total.add("sum", {total.input("x", {f32, {2}})})});
  CHECK_THROWS_WITH_AS(Program::compile(total, {.donations = {{0, 0}}}),
                       "output 0 of type f32[] is donated input 'x' of type f32[2]", TypeError);
  CHECK_THROWS_AS(Program::compile(graph, {.bindings = {{"n", -1}}}), TypeError);
}

TEST_CASE("an input that is updated in place shares its memory with no other") {
  const Array shared(f32, {2});
  Program program = Program::compile(sum_and_product(), {.donations = {{0, 0}}});
  program.bind_input(0, shared);
  program.bind_input(1, shared);
  CHECK_THROWS_WITH_AS(program.run(), doctest::Contains("share memory, and 'x' is updated in place"),
                       InputError);
  program.bind_input(1, Array(f32, {2}));
  program.run();
  CHECK_THROWS_AS(
      Program::compile(sum_and_product(), {.donations = {{0, 0}}, .inputs = {{0, shared}, {1, shared}}}),
      InputError);
}

TEST_CASE("a launch says why providers decline it that have kernels for its operator, and no others") {
  Graph graph;
  const Value x = graph.input("x", {f32, {4, 8}}), w = graph.constant(Array::full(f32, {8, 8}, 0.1));
  graph.set_outputs({graph.add("matmul", {x, w}), graph.add("softmax", {x}, {{"axis", int64_t{1}}})},
                    {"y", "z"});
  bool said = false;
  for (const LaunchInfo& launch : Program::compile(graph).launches()) {
    CAPTURE(launch.operation);
    CHECK(launch.declined.find("only matmul") == std::string::npos);
    CHECK(launch.declined.find("only 2-D convolutions") == std::string::npos);
    said = said || launch.declined.find("thin-product: the right side") != std::string::npos;
  }
  CHECK(said);
}

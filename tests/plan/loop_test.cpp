// Loops: compiled against the reference back end, cut into rows or not, on any number of threads.
#include <cstdlib>
#include <doctest/doctest.h>

#include <millrace/operator.h>
#include <millrace/program.h>
#include <millrace/tensor.h>

#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "ops/build.h"
#include "ops/cond.h"
#include "ops/scan.h"
#include "passes/pass.h"
#include "plan/choose_kernels.h"
#include "plan/rows.h"
#include "support/graphs.h"
#include "support/random_scan.h"
#include "target/device.h"
#include "target/shared_constants.h"

using namespace millrace;

namespace {

std::vector<Array> run(const Graph& graph, const std::vector<Array>& inputs,
                       const std::string& target = "cpu") {
  Program program = Program::compile(graph, {.target = target});
  test::run(program, inputs);
  return test::run(program, inputs);
}

/// h' = tanh(h·U + x), optionally with the mean over the rows taken off.
Graph body_of(int64_t rows, bool mixes, int64_t width = 8) {
  Graph body;
  ops::Build b(body);
  const Value h = body.input("h", {f32, {rows, width}}), x = body.input("x", {f32, {rows, width}}),
              u = body.input("u", {f32, {width, width}});
  Value next = b.unary("tanh", b.add(b.matmul(h, u), x));
  if (mixes) next = b.sub(next, b.mean(next, {0}, true));
  body.set_outputs({next, next});
  return body;
}

/// On cpu, with some passes off at a time.
void check_without(const std::vector<const char*>& passes, const test::RandomGraph& g,
                   const std::vector<Array>& expected) {
  for (const char* pass : passes) {
    CAPTURE(pass);
    setenv("MILLRACE_DISABLE", pass, 1);
    const std::vector<Array> found = run(g.graph, g.inputs);
    unsetenv("MILLRACE_DISABLE");
    CHECK(test::difference(found, expected) < 2e-4);
  }
}

}  // namespace

TEST_CASE("random loops and their gradients give on cpu what they give on ref, with each pass on and off") {
  int seed = 0;
  for (const int64_t rows : {1, 2, 7, 33, 40})
    for (const int64_t length : {0, 1, 2, 5})
      for (const bool mixes : {false, true}) {
        const test::RandomGraph g = test::random_scan(static_cast<uint64_t>(++seed), rows, length, mixes);
        CAPTURE(seed);
        CAPTURE(rows);
        CAPTURE(length);
        const std::vector<Array> expected = ref::evaluate(g.graph, g.inputs);
        CHECK(test::difference(run(g.graph, g.inputs), expected) < 2e-4);
        if (length != 2) continue;
        CHECK(test::difference(run(g.graph, g.inputs, "ref"), expected) < 2e-4);
        check_without({"hoist", "scan", "fuse", "scan,hoist", "simplify,cse,dce"}, g, expected);
        CHECK(Graph::parse(g.graph.str()) == g.graph);
      }
}

TEST_CASE(
    "constants that a loop multiplies by are packed once, not in every run; others stay what they are") {
  for (const int64_t rows : {1, 8, 40})
    for (const int constants : {0, 1, 3}) {  // the weights, then also the first state and the rows to add
      CAPTURE(rows);
      CAPTURE(constants);
      const std::vector<Type> types = {{f32, {8, 8}}, {f32, {rows, 8}}, {f32, {5, rows, 8}}};
      Graph graph;
      std::vector<Value> given;
      for (size_t k = 0; k < types.size(); ++k)
        given.push_back(static_cast<int>(k) < constants ? graph.constant(test::values_for(types[k], k))
                                                        : graph.input(fmt::format("x{}", k), types[k]));
      ops::ScanOperands over{{given[1]}, {given[2]}, {given[0]}, 5};
      const Value last = ops::add_scan(graph, over, std::make_shared<const Graph>(body_of(rows, false)));
      graph.set_outputs({last, {last.node, 1}});
      const std::vector<Array> inputs = test::inputs_for(graph);
      Program program = Program::compile(graph);
      for (int repeat = 0; repeat < 2; ++repeat)
        CHECK(test::difference(test::run(program, inputs), ref::evaluate(graph, inputs)) < 1e-5);
      std::string loops;
      for (const LaunchInfo& launch : program.launches())
        if (launch.operation == "scan") loops += launch.kernel;
      CHECK((loops.find("packed before") == std::string::npos) == (constants > 0));
    }
}

TEST_CASE("a first state and slices are no constants of a loop that multiplies by them") {
  // m' = w·m, y = x·m·s with a slice s in each step.
  Graph body;
  ops::Build b(body);
  const Value m = body.input("m", {f32, {8, 8}}), s = body.input("s", {f32, {8, 8}}),
              w = body.input("w", {f32, {8, 8}}), x = body.input("x", {f32, {4, 8}});
  body.set_outputs({b.matmul(w, m), b.matmul(b.matmul(x, m), s)});
  Graph graph;
  const auto constant = [&](const Shape& shape, uint64_t stream) {
    return graph.constant(test::values_for({f32, shape}, stream));
  };
  ops::ScanOperands over{{constant({8, 8}, 1)},
                         {constant({5, 8, 8}, 2)},
                         {constant({8, 8}, 3), graph.input("x", {f32, {4, 8}})},
                         5};
  const Value last = ops::add_scan(graph, over, std::make_shared<const Graph>(std::move(body)));
  graph.set_outputs({last, {last.node, 1}});
  const std::vector<Array> inputs = test::inputs_for(graph);
  CHECK(test::difference(run(graph, inputs), ref::evaluate(graph, inputs)) < 1e-4);
}

TEST_CASE("what loops have made of constants is in memory in place of these, and is counted") {
  const int64_t before = shared_constant_bytes(), weights = 4 * 64 * 64;
  for (const int64_t rows : {1, 40}) {
    CAPTURE(rows);
    Graph graph;
    ops::ScanOperands over{{graph.input("h", {f32, {rows, 64}})},
                           {graph.input("x", {f32, {5, rows, 64}})},
                           {graph.constant(test::values_for({f32, {64, 64}}, 1))},
                           5};
    graph.set_outputs({ops::add_scan(graph, over, std::make_shared<const Graph>(body_of(rows, false, 64)))});
    const auto executable = Executable::compile(graph);
    int64_t held = 0;
    for (const Array& array : executable->constants()) held += array.bytes();
    CHECK(held == shared_constant_bytes() - before);
    CHECK(held >= weights);
    CHECK(held < 2 * weights);
  }
  CHECK(shared_constant_bytes() == before);
}

TEST_CASE(
    "random conds, while_loops and their gradients give on cpu what they give on ref, with each pass off") {
  int seed = 0;
  const auto check = [&](const test::RandomGraph& g, bool all) {
    CAPTURE(seed);
    const std::vector<Array> expected = ref::evaluate(g.graph, g.inputs);
    CHECK(test::difference(run(g.graph, g.inputs), expected) < 2e-4);
    CHECK(Graph::parse(g.graph.str()) == g.graph);
    if (!all) return;
    CHECK(test::difference(run(g.graph, g.inputs, "ref"), expected) < 2e-4);
    check_without({"hoist", "scan,rescan", "fuse", "simplify,cse,dce", "fold,refold"}, g, expected);
  };
  for (const int64_t rows : {1, 2, 7, 33})
    for (const bool condition : {false, true}) {
      ++seed;
      check(test::random_cond(static_cast<uint64_t>(seed), rows, condition), rows == 7);
    }
  for (const int64_t rows : {1, 7, 33})
    for (const auto& [limit, steps] : {std::pair{0, 3}, {1, 1}, {5, 3}, {4, 9}, {3, 0}}) {
      ++seed;
      check(test::random_while(static_cast<uint64_t>(seed), rows, limit, steps), rows == 7);
    }
}

TEST_CASE("the branch that is not taken does not run, and a program gives either branch by its inputs") {
  // The other branch is a loop without an end.
  const auto branch = [](bool endless) {
    Graph graph;
    ops::Build b(graph);
    const Value x = graph.input("x", {f32, {3}});
    if (!endless) {
      graph.set_outputs({b.mul(x, 2)});
      return graph;
    }
    auto body = std::make_shared<Graph>();
    const Value going = body->input("going", {boolean, {}}), state = body->input("state", {f32, {3}});
    body->set_outputs({going, body->add("sin", {state})});
    ops::ScanOperands over;
    over.conditional = true;
    over.carries = {graph.scalar(boolean, 1), x};
    over.length = no_limit;
    const Value loop = ops::add_scan(graph, over, std::move(body));
    graph.set_outputs({{loop.node, 1}});
    return graph;
  };
  for (const bool first : {true, false}) {
    Graph graph;
    const Value chosen = graph.input("chosen", {boolean, {}}), x = graph.input("x", {f32, {3}});
    auto body = std::make_shared<const Graph>(ops::join_branches(branch(!first), branch(first)));
    graph.set_outputs({ops::add_cond(graph, chosen, {x}, std::move(body))});
    Program program = Program::compile(graph);
    program.input(0).set(0, first ? 1 : 0);
    for (int i = 0; i < 3; ++i) program.input(1).set(i, i + 1);
    program.run();
    CHECK(program.output(0).to_doubles() == std::vector<double>{2, 4, 6});
    CHECK(program.explain().find("branch") != std::string::npos);
  }
}

TEST_CASE("a program of control flow is run by several at a time") {
  const test::RandomGraph g = test::random_while(3, 7, 6, 4);
  const auto executable = Executable::compile(g.graph);
  const std::vector<Array> expected = ref::evaluate(g.graph, g.inputs);
  std::vector<Program> programs;
  for (int i = 0; i < 3; ++i) programs.emplace_back(executable);
  for (Program& program : programs) {
    CHECK(test::difference(test::run(program, g.inputs), expected) < 2e-4);
  }
}

TEST_CASE("a loop gives the same bits on any number of threads") {
  const Target& target = device_named("cpu").target();
  for (const bool mixes : {false, true}) {
    const test::RandomGraph g = test::random_scan(mixes ? 5 : 4, 70, 6, mixes);
    const Graph lowered = run_passes(g.graph, {target, "fp32", ref::evaluate_node});
    int loops = 0;
    for (int i = 0; i < lowered.size(); ++i) {
      const Node& node = lowered.node(i);
      if (node.op->op_class != OpClass::loop) continue;
      ++loops;
      KernelRequest request{lowered, node, {}, {}};
      request.operand_layouts.resize(node.operands.size());
      request.result_layouts.resize(node.types.size());
      std::vector<Array> operands, first;
      std::vector<void*> operand_pointers;
      for (const Value& operand : node.operands) {
        operands.emplace_back(lowered.type(operand));
        for (int64_t e = 0; e < operands.back().count(); ++e)
          operands.back().set(e, 0.01 * static_cast<double>((e * 37 + i) % 101) - 0.5);
        operand_pointers.push_back(operands.back().data());
      }
      for (const int threads : {1, 2, 5}) {
        ThreadPool pool(threads);
        const auto kernel = build_control_flow(request, target, pool);
        std::vector<Array> results;
        std::vector<void*> result_pointers;
        for (const Type& type : node.types) {
          results.emplace_back(type);
          result_pointers.push_back(results.back().data());
        }
        Array scratch(u8, {kernel->scratch_bytes() + 64});
        kernel->run(operand_pointers.data(), result_pointers.data(), scratch.data(), pool);
        if (first.empty()) first = results;
        for (size_t r = 0; r < results.size(); ++r) CHECK(results[r].identical(first[r]));
      }
    }
    CHECK(loops >= 2);
  }
}

TEST_CASE("rows are cut where they do not touch each other") {
  for (const int64_t rows : {2, 16, 33}) {
    CHECK(with_rows(body_of(rows, false), {1, 1, 0}, 5).has_value());
    CHECK_FALSE(with_rows(body_of(rows, true), {1, 1, 0}, 5).has_value());
  }
  const Graph cut = *with_rows(body_of(33, false), {1, 1, 0}, 11);
  CHECK(cut.type(cut.inputs()[0]).shape == Shape{11, 8});
  CHECK(cut.type(cut.inputs()[2]).shape == Shape{8, 8});
  CHECK(cut.type(cut.outputs()[0]).shape == Shape{11, 8});

  Graph graph;
  ops::ScanOperands over;
  over.carries = {graph.input("h", {f32, {33, 8}})};
  over.sequences = {graph.input("x", {f32, {4, 33, 8}})};
  over.invariants = {graph.input("u", {f32, {8, 8}})};
  over.length = 4;
  const Value scan = ops::add_scan(graph, over, std::make_shared<const Graph>(body_of(33, false)));
  graph.set_outputs({scan, {scan.node, 1}});
  CHECK(Program::compile(graph).explain().find("4 steps × 3 parts of 11 rows") != std::string::npos);
}

TEST_CASE("what a loop keeps for its gradient is computed in the forward loop, not again") {
  const test::RandomGraph g = test::random_scan(4, 8, 3, false);
  const Target& target = device_named("cpu").target();
  const Graph lowered = run_passes(g.graph, {target, "fp32", ref::evaluate_node});
  int loops = 0;
  for (int i = 0; i < lowered.size(); ++i) loops += lowered.node(i).op->op_class == OpClass::loop;
  CHECK(loops == 2);
}

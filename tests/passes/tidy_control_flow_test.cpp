#include <doctest/doctest.h>
#include <thread>

#include <millrace/cancel.h>
#include <millrace/operator.h>
#include <millrace/program.h>
#include <millrace/tensor.h>

#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "ops/cond.h"
#include "ops/scan.h"
#include "passes/pass.h"
#include "support/random_graph.h"
#include "target/device.h"

using namespace millrace;

namespace {

Graph on_cpu(const Graph& graph) {
  return run_passes(graph, {device_named("cpu").target(), "fp32", ref::evaluate_node});
}

int count(const Graph& graph, OpClass op_class) {
  int found = 0;
  for (int i = 0; i < graph.size(); ++i) found += graph.node(i).op->op_class == op_class;
  return found;
}

const Node& only(const Graph& graph, OpClass op_class) {
  REQUIRE(count(graph, op_class) == 1);
  int at = 0;
  while (graph.node(at).op->op_class != op_class) ++at;
  return graph.node(at);
}

/// Of x and two matrices: x·w or x·v, and their negatives.
Graph products(int64_t size) {
  Graph body;
  ops::Build b(body);
  const Value x = body.input("x", {f32, {size, size}}), w = body.input("w", {f32, {size, size}}),
              v = body.input("v", {f32, {size, size}});
  const Value one = b.matmul(x, w), other = b.matmul(x, v);
  body.set_outputs({one, b.neg(one), other, b.neg(other)});
  return body;
}

}  // namespace

TEST_CASE("a cond whose condition is known becomes its branch") {
  for (const bool first : {true, false}) {
    Graph graph;
    const Value x = graph.input("x", {f32, {4, 4}}), w = graph.input("w", {f32, {4, 4}}),
                v = graph.input("v", {f32, {4, 4}});
    const Value chosen = graph.add("logical_not", {graph.scalar(boolean, first ? 0 : 1)});
    graph.set_outputs({ops::add_cond(graph, chosen, {x, w, v}, std::make_shared<const Graph>(products(4)))});
    const Graph result = on_cpu(graph);
    CHECK(count(result, OpClass::branch) == 0);
    CHECK(count(result, OpClass::heavy) == 1);
    std::vector<Array> inputs;
    for (int k = 0; k < 3; ++k) {
      inputs.emplace_back(f32, Shape{4, 4});
      for (int64_t i = 0; i < 16; ++i) inputs[k].set(i, static_cast<double>((i * (k + 3)) % 7));
    }
    CHECK(test::difference(ref::evaluate(result, inputs)[0], ref::evaluate(graph, inputs)[0]) < 1e-6);
  }
}

TEST_CASE("of a cond go results that nobody reads, operands that no branch needs, and constants into it") {
  Graph graph;
  const Value chosen = graph.input("chosen", {boolean, {}}), x = graph.input("x", {f32, {4, 4}}),
              v = graph.input("v", {f32, {4, 4}});
  Array weights(f32, {4, 4});
  for (int64_t i = 0; i < 16; ++i) weights.set(i, 0.5 * static_cast<double>(i));
  Graph body = products(4);
  std::vector<Value> operands = {x, graph.constant(weights), v, graph.input("unused", {f32, {3}})};
  body.input("unused", {f32, {3}});
  const Value cond = ops::add_cond(graph, chosen, operands, std::make_shared<const Graph>(body));
  graph.set_outputs({{cond.node, 1}});
  const Graph result = on_cpu(graph);
  const Node& node = only(result, OpClass::branch);
  CHECK(node.types.size() == 1);
  CHECK(node.operands.size() == 3);  // the condition, x, v
  CHECK(count(*node.body, OpClass::constant) == 1);
}

TEST_CASE("branches that cost little are both computed, and nothing is fused across those that do not") {
  Graph little;
  {
    const Value chosen = little.input("chosen", {boolean, {}}), x = little.input("x", {f32, {7}});
    Graph body;
    const Value in = body.input("x", {f32, {7}});
    body.set_outputs({body.add("sin", {in}), body.add("cos", {in})});
    little.set_outputs({ops::add_cond(little, chosen, {x}, std::make_shared<const Graph>(body))});
  }
  CHECK(count(on_cpu(little), OpClass::branch) == 0);

  Graph large;
  const Value chosen = large.input("chosen", {boolean, {}}), x = large.input("x", {f32, {7000}});
  Graph body;
  const Value in = body.input("x", {f32, {7000}}), shared = body.add("sin", {in});
  body.set_outputs({body.add("exp", {shared}), body.add("cos", {shared})});
  large.set_outputs({ops::add_cond(large, chosen, {x}, std::make_shared<const Graph>(body))});
  const Graph result = on_cpu(large);
  const Node& node = only(result, OpClass::branch);
  for (const bool first : {true, false}) CHECK(count(ops::branch_of(*node.body, first), OpClass::group) == 1);
}

TEST_CASE(
    "a while_loop gives up carries that nobody reads, keeps its condition, and computes what stays the same "
    "once") {
  Graph body;
  ops::Build b(body);
  body.input("going", {boolean, {}});
  const Value step = body.input("step", {i64, {}}), x = body.input("x", {f32, {4, 4}}),
              unread = body.input("unread", {f32, {4, 4}}), w = body.input("w", {f32, {4, 4}});
  const Value next = b.add(step, 1), steady = b.matmul(w, w);
  body.set_outputs({body.add("less", {next, body.scalar(i64, 3)}), next, b.add(b.matmul(x, steady), x),
                    b.add(unread, x), steady});
  Graph graph;
  ops::ScanOperands over;
  over.conditional = true;
  over.length = 5;
  over.carries = {graph.input("going", {boolean, {}}), graph.scalar(i64, 0), graph.input("x", {f32, {4, 4}}),
                  graph.input("unread", {f32, {4, 4}})};
  over.invariants = {graph.input("w", {f32, {4, 4}})};
  const Value loop = ops::add_scan(graph, over, std::make_shared<const Graph>(body));
  graph.set_outputs({{loop.node, 2}, {loop.node, 4}});
  const Graph result = on_cpu(graph);
  const Node& node = only(result, OpClass::loop);
  const ops::Scan s = ops::scan_of(node);
  CHECK(s.carries == 3);
  CHECK(count(*node.body, OpClass::heavy) == 1);
  CHECK(count(result, OpClass::heavy) == 1);
  // What is stacked is zero where no step was run, also of what does not change.
  std::vector<Array> inputs;
  for (const Value& input : graph.inputs()) {
    inputs.emplace_back(graph.type(input));
    for (int64_t i = 0; i < inputs.back().count(); ++i) inputs.back().set(i, 1 + static_cast<double>(i % 3));
  }
  for (const double starts : {1.0, 0.0}) {
    inputs[0].set(0, starts);
    const std::vector<Array> found = ref::evaluate(result, inputs), expected = ref::evaluate(graph, inputs);
    for (size_t o = 0; o < 2; ++o) CHECK(test::difference(found[o], expected[o]) < 1e-5);
    CHECK((found[1].at(2 * 16) != 0) == (starts > 0));
    CHECK(found[1].at(3 * 16) == 0);
  }
}

TEST_CASE("a while_loop of constants is left to the program, which can be cancelled") {
  Graph body;
  const Value going = body.input("going", {boolean, {}}), x = body.input("x", {f32, {}});
  body.set_outputs({going, body.add("sin", {x})});
  Graph graph;
  ops::ScanOperands over;
  over.conditional = true;
  over.length = no_limit;
  over.carries = {graph.scalar(boolean, 1), graph.scalar(f32, 1)};
  const Value loop = ops::add_scan(graph, over, std::make_shared<const Graph>(body));
  graph.set_outputs({{loop.node, 1}});
  Program program = Program::compile(graph);
  const CancelToken token;
  std::thread other([&] { token.cancel(); });
  CHECK_THROWS_AS(program.run(token), CancelledError);
  other.join();
}

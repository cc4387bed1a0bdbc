#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <millrace/operator.h>
#include <millrace/program.h>

#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "ops/build.h"
#include "passes/pass.h"
#include "support/cache_variable.h"
#include "support/graphs.h"
#include "support/random_graph.h"
#include "target/tuning_cache.h"

using namespace millrace;

namespace {

/// With every join taken, and the problems that were asked about.
Graph all_joined(const Graph& graph, std::vector<std::string>* problems = nullptr, bool exact = false) {
  static const Target target;
  PassContext context{target, "fp32", ref::evaluate_node, exact};
  context.faster = [&](const std::string& problem, const Form& apart, const Form& joined) {
    if (problems) problems->push_back(problem);
    test::check_forms(apart, joined);
    return true;
  };
  Graph result = eliminate_dead(passes().at("join-products").run(graph, context), context);
  result.verify();
  return result;
}

/// Both give the same numbers, whose sums have the same order on the reference back end.
void check_same(const Graph& a, const Graph& b) {
  const std::vector<Array> inputs = test::inputs_for(a);
  const std::vector<Array> expected = ref::evaluate(a, inputs), got = ref::evaluate(b, inputs);
  REQUIRE(expected.size() == got.size());
  for (size_t o = 0; o < got.size(); ++o)
    for (int64_t i = 0; i < got[o].count(); ++i) REQUIRE(got[o].at(i) == expected[o].at(i));
}

/// Queries, keys and values of different widths; `constant`: of constant weights.
Graph three_of(bool common_left, bool ta, bool tb, bool constant) {
  Graph graph;
  ops::Build b(graph);
  constexpr int64_t inner = 5, outer = 7;
  const Value x =
      graph.input("x", {f64, (common_left ? ta : !tb) ? Shape{inner, outer} : Shape{outer, inner}});
  std::vector<Value> results;
  for (const int64_t width : {4, 1, 3}) {
    const Type type{f64, (common_left ? tb : !ta) ? Shape{width, inner} : Shape{inner, width}};
    const Value w = constant ? graph.constant(test::values_for(type, 90 + width)) : graph.input("w", type);
    graph.set_origin({fmt::format("block.{}", results.size())});
    const Value product = common_left ? b.matmul(x, w, ta, tb) : b.matmul(w, x, ta, tb);
    results.push_back(b.add(product, 1.0));
  }
  graph.set_outputs(results);
  return graph;
}

}  // namespace

TEST_CASE("products that share a side become one, however they are stored") {
  for (int kind = 0; kind < 16; ++kind) {
    CAPTURE(kind);
    const Graph graph = three_of(kind & 1, kind & 2, kind & 4, kind & 8);
    const Graph joined = all_joined(graph);
    CHECK(test::count(graph, "matmul") == 3);
    CHECK(test::count(joined, "matmul") == 1);
    // Constants are joined once, not in every run.
    CHECK(test::count(joined, "concat") == (kind & 8 ? 0 : 1));
    for (int i = 0; i < joined.size(); ++i)
      if (joined.node(i).op->name == "matmul") CHECK(joined.node(i).origin.layer == "block");
    check_same(graph, joined);
  }
}

TEST_CASE("a product of another's result is no sibling of it, and casts are no obstacle") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f64, {4, 4}});
  const Value first = b.matmul(x, graph.input("a", {f64, {4, 4}}));
  const Value later = b.matmul(x, b.unary("exp", first));  // takes the first one's result
  const Value rounded = b.cast(b.cast(graph.input("c", {f64, {4, 4}}), f32), f64);
  const Value third = b.matmul(x, rounded);
  graph.set_outputs({first, later, third});
  const Graph joined = all_joined(graph);
  CHECK(test::count(joined, "matmul") == 2);
  check_same(graph, joined);
}

TEST_CASE("what reads a sibling may come before what another one takes") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f64, {3, 4}}), w = graph.input("w", {f64, {4, 2}});
  const Value first = b.matmul(x, w);
  const Value sum = b.sum(first, {0, 1}, false);
  const Value second = b.matmul(x, b.transpose(graph.input("v", {f64, {5, 4}}), {1, 0}));
  graph.set_outputs({b.mul(sum, b.sum(second, {0, 1}, false)), second});
  const Graph joined = all_joined(graph);
  CHECK(test::count(joined, "matmul") == 1);
  check_same(graph, joined);
}

TEST_CASE("programs that must keep the order of sums join nothing") {
  std::vector<std::string> problems;
  const Graph graph = three_of(true, false, true, false);
  CHECK(test::count(all_joined(graph, &problems, true), "matmul") == 3);
  CHECK(problems.empty());
}

TEST_CASE("random graphs compute the same with all siblings joined") {
  int joined_graphs = 0;
  for (int seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const test::RandomGraph g = test::random_graph(static_cast<uint64_t>(seed) + 9000, 10 + seed);
    const Graph joined = all_joined(g.graph);
    joined_graphs += test::count(joined, "matmul") < test::count(g.graph, "matmul");
    const std::vector<Array> expected = ref::evaluate(g.graph, g.inputs),
                             got = ref::evaluate(joined, g.inputs);
    for (size_t o = 0; o < got.size(); ++o)
      for (int64_t i = 0; i < got[o].count(); ++i)
        CHECK((got[o].at(i) == expected[o].at(i) ||
               (got[o].at(i) != got[o].at(i) && expected[o].at(i) != expected[o].at(i))));
  }
  MESSAGE(joined_graphs << " of 60 graphs had siblings");
}

TEST_CASE("which form is faster is measured, recorded, and taken from the record") {
  const testing::CacheVariable cache;
  const Graph graph = three_of(true, false, true, false);
  std::vector<std::string> problems;
  all_joined(graph, &problems);
  REQUIRE(problems.size() == 1);
  const Program measured = Program::compile(graph);
  REQUIRE(measured.choices().contains(problems[0]));
  for (const std::string choice : {"as it is", "rewritten"}) {
    CompileOptions options;
    options.choices[problems[0]] = choice;
    Program program = Program::compile(graph, options);
    CHECK(program.choices().at(problems[0]) == choice);
    int products = 0;
    for (const LaunchInfo& launch : program.launches()) products += launch.operation == "matmul";
    CHECK(products == (choice == "rewritten" ? 1 : 3));
    const std::vector<Array> inputs = test::inputs_for(graph), expected = ref::evaluate(graph, inputs);
    const std::vector<Array> got = test::run(program, inputs);
    for (size_t o = 0; o < expected.size(); ++o)
      for (int64_t i = 0; i < expected[o].count(); ++i)
        CHECK(got[o].at(i) == doctest::Approx(expected[o].at(i)));
  }
}

TEST_CASE("products that are read one after another stay apart where joining them takes memory") {
  const testing::CacheVariable cache;
  // Every layer multiplies the same memory, as a decoder does that looks at an encoder's results.
  Graph graph;
  ops::Build b(graph);
  const Value memory = graph.input("memory", {f32, {64, 128}});
  Value x = memory;
  for (int layer = 0; layer < 8; ++layer) {
    const Value seen = b.unary("tanh", b.matmul(memory, graph.input("v", {f32, {128, 128}})));
    x = b.unary("tanh", b.matmul(b.add(x, seen), graph.input("w", {f32, {128, 128}})));
  }
  graph.set_outputs({x});
  std::vector<std::string> problems;
  all_joined(graph, &problems);
  REQUIRE(problems.size() == 1);
  keep_choice(problems[0], "rewritten");  // as if it had been measured

  const auto compiled = [&](std::map<std::string, std::string> choices) {
    return Program::compile(graph, {.choices = std::move(choices)});
  };
  const Program apart = compiled({{problems[0], "as it is"}}),
                joined = compiled({{problems[0], "rewritten"}}), chosen = compiled({});
  REQUIRE(joined.arena_bytes() > 2 * apart.arena_bytes());
  CHECK(chosen.arena_bytes() == apart.arena_bytes());
  // The answer is recorded; what was recorded before is not asked again.
  CHECK(chosen.choices().at(problems[0]) == "as it is");
  CHECK(joined.choices().at(problems[0]) == "rewritten");
}

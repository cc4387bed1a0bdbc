#include <doctest/doctest.h>
#include <string>

#include <millrace/operator.h>
#include <millrace/program.h>

#include "autodiff/gradient.h"
#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "passes/pass.h"
#include "support/codegen_support.h"
#include "support/graphs.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

Graph fused(const Graph& graph) {
  Target target;
  target.fuses = true;
  Graph result = passes().at("fuse").run(graph, {target, "fp32", {}});
  result.verify();
  return result;
}

}  // namespace

TEST_CASE("a chain of element-wise operators with broadcasts becomes one nest") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {8, 16}}), w = graph.input("w", {f32, {16}});
  graph.set_outputs({b.unary("tanh", b.add(b.mul(x, w), 1.0))});
  const Graph result = fused(graph);
  CHECK(test::count(result, "fused") == 1);
  CHECK(result.node(result.outputs()[0]).operands.size() == 2);
}

TEST_CASE("a reduction takes its producers along, and siblings over the same values share one nest") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {64, 32}}), y = graph.input("y", {f32, {64, 32}});
  graph.set_outputs({b.sum(x, {0}, false), b.sum(b.mul(x, y), {0}, false), b.sum(y, {1}, false)});
  const Graph result = fused(graph);
  CHECK(test::count(result, "fused") == 2);  // the third reduces another axis
}

TEST_CASE("a reduction and what needs its result are separate nests") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {64, 32}});
  graph.set_outputs({b.sub(x, b.mean(x, {0}, true))});
  const Graph result = fused(graph);
  CHECK(test::count(result, "fused") == 2);
}

// Fusion takes it that no path leads back over an `after`. Nests that were merged across one are such paths.
TEST_CASE("a nest on both sides of a cut is seen by what is merged later") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {64, 32}}), z = graph.input("z", {f32, {64, 48}});
  const Value row = graph.input("row", {f32, {1, 32}}), w = graph.input("w", {f32, {7}});
  const Value first = b.sum(z, {1}, true);
  const Value mine = b.sum(x, {1}, true);
  const Value second = b.max(b.mul(z, mine), {1}, false);
  const Value cut = graph.add("after", {w, row});
  // Of one nest with `mine`, which is before the cut; it needs `first`, and `second` needs `mine`: so `first`
  // and `second` cannot share a nest, though they read the same values.
  const Value last = b.max(b.add(x, b.matmul(first, row)), {1}, false);
  graph.set_outputs({second, cut, last});
  const Graph result = fused(graph);
  CHECK(test::count(result, "fused") == 3);
  Program program = Program::compile(graph);
  const std::vector<Array> inputs = test::inputs_for(graph);
  CHECK(test::difference(test::run(program, inputs), ref::evaluate(graph, inputs)) < 1e-4);
}

TEST_CASE("what is cut into parts that one nest reads is computed there, unless the parts overlap") {
  const auto graph_of = [](int64_t apart) {
    Graph graph;
    ops::Build b(graph);
    const Value x = graph.input("x", {f32, {8, 3 * apart + 16}}), w = graph.input("w", {f32, {8, 1}});
    const Value whole = b.unary("exp", b.mul(x, w));
    const auto part = [&](int64_t k) {
      const Attributes bounds{{"starts", std::vector<int64_t>{0, k * apart}},
                              {"ends", std::vector<int64_t>{8, k * apart + 16}}};
      return graph.add("slice", {whole}, bounds);
    };
    graph.set_outputs({b.add(b.mul(part(0), part(1)), b.mul(part(2), part(3)))});
    return graph;
  };
  for (const int64_t apart : {16, 15}) {
    const Graph graph = graph_of(apart);
    CHECK(test::count(fused(graph), "fused") == (apart == 16 ? 1 : 2));
    Program program = Program::compile(graph);
    const std::vector<Array> inputs = test::inputs_for(graph);
    CHECK(test::difference(test::run(program, inputs), ref::evaluate(graph, inputs)) < 1e-6);
  }
}

TEST_CASE("a value needed in two nests is computed in both when that costs no more reads, else stored") {
  for (const char* op : {"neg", "exp"}) {
    Graph graph;
    ops::Build b(graph);
    const Value x = graph.input("x", {f32, {64, 32}});
    const Value u = b.unary(op, x);
    const Value m = b.mean(u, {0}, true);
    graph.set_outputs({b.mul(u, m)});
    const Graph result = fused(graph);
    CHECK(test::count(result, "fused") == 2);
    CAPTURE(op);
    int results = 0;
    for (int i = 0; i < result.size(); ++i)
      if (result.node(i).op->name == "fused") results += static_cast<int>(result.node(i).types.size());
    CHECK(results == (std::string(op) == "exp" ? 3 : 2));
  }
}

TEST_CASE("a value that goes out and comes back does not make a cycle") {
  // a feeds a matrix product whose result joins a again.
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {16, 16}});
  const Value a = b.unary("exp", x);
  graph.set_outputs({b.add(b.add(a, b.matmul(a, a)), b.unary("tanh", a))});
  const Graph result = fused(graph);
  CHECK(test::count(result, "fused") == 2);
}

TEST_CASE("a small vector is not computed anew for every row it is broadcast to") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {1000, 16}}), v = graph.input("v", {f32, {16}});
  graph.set_outputs({b.mul(x, b.unary("exp", v))});
  CHECK(test::count(fused(graph), "fused") == 2);
}

TEST_CASE("all results of one update come from one nest") {
  Graph graph;
  ops::Build b(graph);
  const Shape shape{300, 40};
  const Value p = graph.input("p", {f32, shape}), m = graph.input("m", {f32, shape}),
              v = graph.input("v", {f32, shape}), g = graph.input("g", {f32, shape}),
              sound = graph.input("sound", {boolean, {}});
  const Value m1 = b.add(b.mul(m, 0.9), b.mul(g, 0.1)), v1 = b.add(b.mul(v, 0.99), b.mul(g, g));
  const Value p1 = b.sub(p, b.div(m1, b.unary("sqrt", v1)));
  graph.set_outputs({b.select(sound, p1, p), b.select(sound, m1, m), b.select(sound, v1, v)});
  const Graph result = fused(graph);
  CHECK(test::count(result, "fused") == 1);
  CHECK(result.node(result.outputs()[0]).operands.size() == 5);
}

TEST_CASE("what reads a summed value at the same index joins the sum's nest") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {64, 32}});
  const Value g = b.unary("exp", x);
  graph.set_outputs({b.sum(g, {0}, false), graph.add("cast", {g}, {{"dtype", bf16}})});
  const Graph result = fused(graph);
  CHECK(test::count(result, "fused") == 1);
  CHECK(result.node(result.outputs()[0]).types.size() == 2);  // g itself is not stored
}

TEST_CASE(
    "the gradient of a maximum finds its element, though cheap values are computed where they are read") {
  Graph graph;
  ops::Build b(graph);
  const Type type{f32, {64, 200}};
  const Value a = graph.input("a", type), w = graph.input("w", {f32, {200}});
  const Value h = b.mul(a, b.broadcast(w, type.shape));
  const Value x = b.sub(b.mul(h, h), b.mul(h, 0.7));  // products that may join the subtraction, or not
  const Value loss = b.add(b.mean(b.unary("tanh", b.max(x, {1}, false)), {}, false),
                           b.mean(b.unary("sigmoid", b.mul(h, h)), {}, false));
  const Value wrt[] = {a, w};
  graph.set_outputs(gradients(graph, loss, wrt));
  const std::vector<Array> values = {random_array(type, 1, -1, 1), random_array({f32, {200}}, 2, -1, 1)};
  const std::vector<Array> expected = ref::evaluate(graph, values);
  Program program = Program::compile(graph);
  for (int i = 0; i < 2; ++i) program.bind_input(i, values[static_cast<size_t>(i)].clone());
  program.run();
  for (int o = 0; o < 2; ++o)
    CHECK(test::difference(program.output(o), expected[static_cast<size_t>(o)]) < 1e-6);
}

TEST_CASE("what is made of more values than code takes at once is computed in parts") {
  constexpr int64_t many = 300;
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {many, 4}});
  std::vector<Value> pieces;
  for (int64_t i = 0; i < many; ++i) {
    const Value piece = graph.add(
        "slice", {x}, {{"starts", std::vector<int64_t>{i, 0}}, {"ends", std::vector<int64_t>{i + 1, 4}}});
    pieces.push_back(i % 2 == 0 ? b.unary("exp", piece) : b.neg(piece));
  }
  Value sum = pieces[0];  // and one element made of all
  for (int64_t i = 1; i < many; ++i) sum = b.add(sum, pieces[static_cast<size_t>(i)]);
  // Inputs of their own cannot be one value that is read at several places.
  std::vector<Value> apart;
  for (int64_t i = 0; i < many; ++i) apart.push_back(graph.input("y", {f32, {1, 4}}));
  Value of_apart = apart[0];
  for (int64_t i = 1; i < many; ++i) of_apart = b.add(of_apart, apart[static_cast<size_t>(i)]);
  graph.set_outputs({graph.add("concat", pieces, {{"axis", int64_t{0}}}), sum,
                     graph.add("concat", apart, {{"axis", int64_t{1}}}), of_apart});
  const std::vector<Array> inputs = test::inputs_for(graph), expected = ref::evaluate(graph, inputs);
  Program program = Program::compile(graph);
  const std::vector<Array> results = test::run(program, inputs);
  for (size_t i = 0; i < expected.size(); ++i) CHECK(test::difference(results[i], expected[i]) < 1e-5);
}

#include <doctest/doctest.h>
#include <functional>
#include <limits>

#include <millrace/operator.h>

#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "passes/pass.h"
#include "support/graphs.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

using Root = std::function<Value(ops::Build&, Value, Value)>;

/// (x − mean) · weight / sqrt(mean(square) + eps) + bias, `root` being what becomes of the difference and of
/// mean(square) + eps.
Graph written_norm(const std::function<Value(ops::Build&, Value)>& square, const Root& root, int64_t axis = 2,
                   double eps = 1e-3) {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {2, 3, 10}});
  const Value d = b.sub(x, b.mean(x, {axis}, true));
  const Value variance = b.add(b.mean(square(b, d), {axis}, true), eps);
  const Value y = b.mul(root(b, d, variance), graph.input("w", {f32, {10}}));
  graph.set_outputs({b.add(graph.input("b", {f32, {10}}), y)});
  return graph;
}

Graph with_norms(const Graph& graph) {
  static const Target target;
  Graph result = passes().at("recognise-norms").run(graph, {target, "fp32", ref::evaluate_node});
  result.verify();
  return result;
}

Value plain_square(ops::Build& b, Value d) { return b.mul(d, d); }
Value by_division(ops::Build& b, Value d, Value variance) { return b.div(d, b.unary("sqrt", variance)); }

}  // namespace

TEST_CASE("layer norms are recognised however they are written") {
  const std::vector<std::function<Value(ops::Build&, Value)>> squares = {
      plain_square, [](ops::Build& b, Value d) { return b.unary("square", d); },
      [](ops::Build& b, Value d) { return b.binary("pow", d, b.fill(d, 2)); }};
  const std::vector<Root> roots = {
      by_division, [](ops::Build& b, Value d, Value v) { return b.mul(b.unary("rsqrt", v), d); },
      [](ops::Build& b, Value d, Value v) { return b.mul(d, b.unary("reciprocal", b.unary("sqrt", v))); }};
  for (const auto& square : squares)
    for (const Root& root : roots) {
      const Graph graph = written_norm(square, root), result = with_norms(graph);
      CHECK(test::count(result, "layer_norm") == 1);
      CHECK(test::count(result, "mean") == 0);
      const std::vector<Array> inputs = test::inputs_for(graph);
      CHECK(test::difference(ref::evaluate(result, inputs)[0], ref::evaluate(graph, inputs)[0]) < 1e-5);
    }
}

TEST_CASE("what is no layer norm is left as it is") {
  const auto left = [](const Graph& graph) { return test::count(with_norms(graph), "layer_norm") == 0; };
  CHECK(left(written_norm(plain_square, by_division, 1)));
  for (const double eps : {-1e-3, std::numeric_limits<double>::quiet_NaN()})
    CHECK(left(written_norm(plain_square, by_division, 2, eps)));
  CHECK(left(written_norm([](ops::Build& b, Value d) { return b.unary("abs", d); }, by_division)));
  CHECK(left(
      written_norm([](ops::Build& b, Value d) { return b.binary("pow", d, b.fill(d, 3)); }, by_division)));
  CHECK(left(written_norm(plain_square,
                          [](ops::Build& b, Value d, Value v) { return b.mul(d, b.unary("sqrt", v)); })));
  CHECK(left(written_norm(plain_square, [](ops::Build& b, Value d, Value v) {
    return b.div(b.unary("abs", d), b.unary("sqrt", v));
  })));
}

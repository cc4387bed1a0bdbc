#include "ops/work.h"

#include <doctest/doctest.h>

#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "ops/cond.h"
#include "ops/convolution.h"
#include "ops/scan.h"

using namespace millrace;

namespace {

double flops_of(const Graph& graph, Value value) { return ops::flops(graph, graph.node(value)); }

/// Sum of all elements.
double total(const Array& array) {
  double sum = 0;
  for (int64_t i = 0; i < array.count(); ++i) sum += array.at(i);
  return sum;
}

}  // namespace

TEST_CASE("a matrix product is two operations for each product, however its operands are stored") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {3, 5, 7}}), y = graph.input("y", {f32, {3, 5, 11}});
  CHECK(flops_of(graph, b.matmul(x, y, true, false)) == 2.0 * 3 * 7 * 5 * 11);
  const Value z = graph.input("z", {f32, {3, 11, 7}});
  CHECK(flops_of(graph, b.matmul(x, z, false, true)) == 2.0 * 3 * 5 * 7 * 11);
}

TEST_CASE("a convolution of ones adds up half as much as it has operations, and its gradients have as many") {
  for (const ops::ConvolutionSample& s : ops::convolution_samples()) {
    if (s.x.count() == 0) continue;
    CAPTURE(s.x.str());
    Graph graph;
    const Value x = graph.input("x", {f64, s.x}), w = graph.input("w", {f64, s.w});
    const Value y = graph.add("conv2d", {x, w}, s.attributes);
    graph.set_outputs({y});
    const Array ones[] = {Array::full(f64, s.x, 1), Array::full(f64, s.w, 1)};
    const double expected = 2 * total(ref::evaluate(graph, ones)[0]);
    CHECK(flops_of(graph, y) == expected);
    Attributes for_x = s.attributes, for_w = s.attributes;
    for_x.set("input_shape", s.x);
    for_w.set("weight_shape", s.w);
    CHECK(flops_of(graph, graph.add("conv2d_input_grad", {y, w}, for_x)) == expected);
    CHECK(flops_of(graph, graph.add("conv2d_weight_grad", {x, y}, for_w)) == expected);
  }
}

TEST_CASE("other operators count what their bodies do") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {4, 6}}), i = graph.input("i", {i64, {4, 6}});
  CHECK(flops_of(graph, b.add(x, x)) == 24);
  CHECK(flops_of(graph, b.add(i, i)) == 0);
  CHECK(flops_of(graph, b.unary("exp", x)) == 24);
  CHECK(flops_of(graph, b.sum(x, {1}, false)) == 24);
  CHECK(flops_of(graph, b.binary("less", x, x)) == 0);
  CHECK(flops_of(graph, graph.add("transpose", {x}, {{"permutation", std::vector<int64_t>{1, 0}}})) == 0);
  // softmax: maximum, difference, exp, sum, quotient
  CHECK(flops_of(graph, b.softmax(x, 1)) >= 5 * 24);
  CHECK(flops_of(graph, b.softmax(x, 1)) <= 7 * 24);
}

TEST_CASE("what gather and slice leave out is not read") {
  Graph graph;
  ops::Build b(graph);
  const Value table = graph.input("table", {f32, {1000, 8}}), index = graph.input("index", {i64, {3}});
  const Value rows = graph.add("gather", {table, index}, {{"axis", int64_t{0}}});
  CHECK(ops::bytes_read(graph, graph.node(rows), 0) == 3 * 8 * 4);
  CHECK(ops::bytes_read(graph, graph.node(rows), 1) == 3 * 8);
  CHECK(ops::bytes_written(graph, graph.node(rows), 0) == 3 * 8 * 4);

  // Indices are read whole, also where they are wider than what they pick; a table at most once.
  const Value marks = graph.input("marks", {u8, {4}}), many = graph.input("many", {i64, {50}});
  const Value picked = graph.add("gather", {marks, many}, {{"axis", int64_t{0}}});
  CHECK(ops::bytes_read(graph, graph.node(picked), 0) == 4);
  CHECK(ops::bytes_read(graph, graph.node(picked), 1) == 50 * 8);

  using Ints = std::vector<int64_t>;
  const Value part =
      graph.add("slice", {table}, {{"starts", Ints{10, 0}}, {"ends", Ints{30, 8}}, {"steps", Ints{5, 2}}});
  CHECK(ops::bytes_read(graph, graph.node(part), 0) == 4 * 4 * 4);
  CHECK(ops::bytes_written(graph, graph.node(part), 0) == 4 * 4 * 4);

  const auto nest = [&](bool whole) {
    auto body = std::make_shared<Graph>();
    ops::Build inner(*body);
    const Value t = body->input("t", {f32, {1000, 8}}), k = body->input("k", {i64, {3}});
    const Value taken = inner.unary("exp", body->add("gather", {t, k}, {{"axis", int64_t{0}}}));
    body->set_outputs({whole ? inner.sum(t, {0}, false) : taken, taken});
    return graph.add_with_body(get_operator("fused"), {table, index}, {}, body);
  };
  CHECK(ops::bytes_read(graph, graph.node(nest(false)), 0) == 3 * 8 * 4);
  CHECK(ops::bytes_read(graph, graph.node(nest(true)), 0) == 1000 * 8 * 4);

  // Of what several take, each part counts, and no more than there is.
  const auto picks = [&](int times) {
    auto body = std::make_shared<Graph>();
    const Value t = body->input("t", {f32, {1000, 8}}), k = body->input("k", {i64, {3}});
    std::vector<Value> taken;
    for (int i = 0; i < times; ++i) taken.push_back(body->add("gather", {t, k}));
    body->set_outputs(taken);
    return graph.add_with_body(get_operator("fused"), {table, index}, {}, body);
  };
  CHECK(ops::bytes_read(graph, graph.node(picks(2)), 0) == 2 * 3 * 8 * 4);
  CHECK(ops::bytes_read(graph, graph.node(picks(400)), 0) == 1000 * 8 * 4);
}

TEST_CASE("a table that is updated where it lies is touched at the rows that are named") {
  Graph graph;
  const Value table = graph.input("table", {f32, {1000, 8}}), index = graph.input("index", {i64, {3}}),
              rows = graph.input("rows", {f32, {3, 8}});
  const Node written = graph.node(graph.add("scatter_rows", {table, index, rows}));
  const Node added = graph.node(graph.add("scatter_add", {table, index, rows}));
  for (const Node* node : {&written, &added}) {
    CHECK(ops::bytes_read(graph, *node, 0) == 1000 * 8 * 4);
    CHECK(ops::bytes_written(graph, *node, 0) == 1000 * 8 * 4);
    CHECK(ops::bytes_written(graph, *node, 0, true) == 3 * 8 * 4);
    for (const bool in_place : {false, true}) {
      CHECK(ops::bytes_read(graph, *node, 1, in_place) == 3 * 8);
      CHECK(ops::bytes_read(graph, *node, 2, in_place) == 3 * 8 * 4);
    }
  }
  CHECK(ops::bytes_read(graph, written, 0, true) == 0);
  CHECK(ops::bytes_read(graph, added, 0, true) == 3 * 8 * 4);

  // More rows than there are touch all of them.
  const Value few = graph.input("few", {f32, {2, 8}});
  const Node over = graph.node(graph.add("scatter_add", {few, index, rows}));
  CHECK(ops::bytes_written(graph, over, 0, true) == 2 * 8 * 4);
}

TEST_CASE("products say how wide their numbers are, and loops say it of the product in them") {
  for (const DType dtype : {f32, bf16}) {
    Graph body;
    ops::Build b(body);
    const Value h = body.input("h", {dtype, {4, 8}}), x = body.input("x", {dtype, {4, 8}}),
                u = body.input("u", {dtype, {8, 8}});
    const Value next = b.add(b.matmul(h, u), x);
    body.set_outputs({next, next});
    Graph graph;
    ops::ScanOperands over;
    over.carries = {graph.input("h", {dtype, {4, 8}})};
    over.sequences = {graph.input("x", {dtype, {3, 4, 8}})};
    over.invariants = {graph.input("u", {dtype, {8, 8}})};
    over.length = 3;
    const Value scan = ops::add_scan(graph, over, std::make_shared<const Graph>(body));
    CHECK(ops::arithmetic_bits(graph, graph.node(scan)) == dtype.bits);
    CHECK(ops::arithmetic_bits(body, body.node(next)) == 32);
  }
}

TEST_CASE("a convolution with what follows multiplies what its operands hold, though its body is in f32") {
  for (const DType dtype : {f32, bf16}) {
    Graph graph;
    const Value x = graph.input("x", {dtype, {1, 8, 6, 6}}), w = graph.input("w", {dtype, {8, 8, 3, 3}}),
                bias = graph.input("bias", {f32, {8}});
    const Value y = graph.add("fused_conv2d", {x, w, bias});
    CHECK(ops::arithmetic_bits(graph, graph.node(y)) == dtype.bits);
  }
}

TEST_CASE("a branch reads all of its operands, of which its body has fewer") {
  Graph branch;
  branch.set_outputs({branch.input("x", {f32, {5}})});
  Graph graph;
  const Value which = graph.input("which", {boolean, {}}), x = graph.input("x", {f32, {5}});
  const auto body = std::make_shared<const Graph>(ops::join_branches(branch, branch));
  const Value y = ops::add_cond(graph, which, {x}, body);
  for (int k = 0; k < 2; ++k)
    CHECK(ops::bytes_read(graph, graph.node(y), k) ==
          static_cast<double>(graph.type(graph.node(y).operands[static_cast<size_t>(k)]).bytes()));
}

#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <set>

#include <millrace/operator.h>
#include <millrace/random.h>

#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "passes/pass.h"
#include "passes/rules/rule.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

using Ints = std::vector<int64_t>;

Graph simplified(const Graph& graph, bool exact = false, std::vector<std::string> disabled = {}) {
  static const Target target;
  const PassContext context{target, "fp32", ref::evaluate_node, exact, std::move(disabled)};
  Graph result = eliminate_dead(simplify(graph, context), context);
  result.verify();
  return result;
}

/// The operators of a graph in order, without inputs and constants.
std::string operators(const Graph& graph) {
  std::string text;
  for (int i = 0; i < graph.size(); ++i)
    if (!graph.node(i).op->is_given())
      text += (text.empty() ? "" : " ") + std::string(graph.node(i).op->name);
  return text;
}

struct Case {
  std::string rule;
  Type input;
  std::function<Value(ops::Build&, Value x)> make;
  std::string before, after;
};

const std::vector<Case>& cases() {
  static const Type matrix{f32, {3, 4}};
  static const auto add = [](ops::Build& b, std::string_view op, std::vector<Value> operands,
                             Attributes attributes) {
    return b.graph().add(op, std::move(operands), std::move(attributes));
  };
  static const std::vector<Case> all = {
      {"concat-of-many", matrix,
       [](auto& b, Value x) {
         return add(b, "concat", std::vector<Value>(66, x), {{"axis", int64_t{1}}});
       },
       "concat", "concat concat concat"},
      {"reshape-of-reshape", matrix,
       [](auto& b, Value x) {
         return b.reshape(b.reshape(x, {12}), {6, 2});
       },
       "reshape reshape", "reshape"},
      {"broadcast-of-broadcast",
       {f32, {4}},
       [](auto& b, Value x) {
         return b.broadcast(b.broadcast(x, {3, 4}), {2, 3, 4});
       },
       "broadcast broadcast",
       "broadcast"},
      {"transpose-of-transpose", matrix,
       [](auto& b, Value x) {
         return b.transpose(b.transpose(x, {1, 0}), {1, 0});
       },
       "transpose transpose", ""},
      {"transpose-of-transpose",
       {f32, {2, 3, 4}},
       [](auto& b, Value x) {
         return b.transpose(b.transpose(x, {1, 2, 0}), {0, 2, 1});
       },
       "transpose transpose",
       "transpose"},
      {"no-op", matrix,
       [](auto& b, Value x) {
         return add(b, "cast", {x}, {{"dtype", f32}});
       },
       "cast", ""},
      {"widened-and-back",
       {bf16, {3, 4}},
       [](auto& b, Value x) {
         const Value wide = add(b, "cast", {x}, {{"dtype", f32}});
         return add(b, "cast", {wide}, {{"dtype", bf16}});
       },
       "cast cast",
       ""},
      {"no-op", matrix,
       [](auto& b, Value x) {
         return add(b, "slice", {x}, {{"starts", Ints{0, 0}}, {"ends", Ints{3, 9}}});
       },
       "slice", ""},
      {"no-op", matrix,
       [](auto& b, Value x) {
         return add(b, "pad", {x}, {{"low", Ints{0, 0}}, {"high", Ints{0, 0}}});
       },
       "pad", ""},
      {"no-op", matrix,
       [](auto& b, Value x) {
         return add(b, "concat", {x}, {{"axis", int64_t{0}}});
       },
       "concat", ""},
      {"reduce-nothing",
       {f32, {3, 1, 4}},
       [](auto& b, Value x) { return b.sum(x, {1}, false); },
       "sum",
       "reshape"},
      {"add-zero", matrix, [](auto& b, Value x) { return b.sub(b.add(x, 0.0), 0.0); },
       "broadcast add broadcast sub", ""},
      {"multiply-by-one", matrix, [](auto& b, Value x) { return b.div(b.mul(x, 1.0), 1.0); },
       "broadcast mul broadcast div", ""},
      {"negative-of-negative", matrix, [](auto& b, Value x) { return b.neg(b.neg(x)); }, "neg neg", ""},
      {"add-of-negative", matrix, [](auto& b, Value x) { return b.add(b.mul(x, x), b.neg(x)); },
       "neg mul add", "mul sub"},
      {"add-of-negative", matrix,
       [](auto& b, Value x) {
         const Value negative = b.neg(x);
         return b.add(negative, b.mul(x, x));
       },
       "neg mul add", "mul sub"},
      {"select-of-constant", matrix,
       [](auto& b, Value x) {
         return b.select(b.broadcast(b.graph().constant(Array::full(boolean, {}, 1)), {3, 4}), x,
                         b.mul(x, x));
       },
       "mul broadcast select", ""},
      {"small-power", matrix, [](auto& b, Value x) { return b.binary("pow", x, b.fill(x, 2)); },
       "broadcast pow", "mul"},
      {"divide-by-power-of-two", matrix, [](auto& b, Value x) { return b.div(x, -8.0); }, "broadcast div",
       "broadcast mul"},
      {"extreme-of-broadcast",
       {f32, {3, 1}},
       [](auto& b, Value x) {
         return b.max(b.broadcast(x, {2, 3, 4}), {0, 2}, false);
       },
       "broadcast max",
       "reshape"},
      {"gather-of-cast",
       {bf16, {3, 4}},
       [](auto& b, Value x) {
         const Value wide = add(b, "cast", {x}, {{"dtype", f32}});
         const Value rows = add(b, "cast", {b.graph().constant(Array::full(f32, {2}, 1))}, {{"dtype", i64}});
         return add(b, "gather", {wide, rows}, {{"axis", int64_t{0}}});
       },
       "cast cast gather",
       "cast gather cast"},
      {"matmul-of-transpose", matrix,
       [](auto& b, Value x) {
         return b.matmul(b.transpose(x, {1, 0}), x);
       },
       "transpose matmul", "matmul"},
      {"divide-by-constant", matrix, [](auto& b, Value x) { return b.div(x, 3.0); }, "broadcast div",
       "broadcast mul"},
      {"sum-of-broadcast",
       {f32, {3, 1}},
       [](auto& b, Value x) {
         return b.sum(b.broadcast(x, {3, 5}), {1}, true);
       },
       "broadcast sum",
       "broadcast mul"},
      {"log-of-softmax", matrix, [](auto& b, Value x) { return b.unary("log", b.softmax(x, 1)); },
       "softmax log", "log_softmax"},
      {"stable-log-sum-exp", matrix,
       [](auto& b, Value x) { return b.unary("log", b.sum(b.unary("exp", x), {1}, false)); }, "exp sum log",
       "max broadcast is_finite select broadcast sub exp sum log add reshape"},
      {"transposed-convolution-of-patches",
       {f32, {2, 3, 4, 5}},
       [](auto& b, Value x) {
         Array w(f32, {3, 7, 2, 3});
         for (int64_t i = 0; i < w.count(); ++i) w.set(i, 0.25 * static_cast<double>(i % 11) - 1);
         return add(b, "conv2d_input_grad", {x, b.graph().constant(w)},
                    {{"strides", Ints{2, 3}}, {"input_shape", Shape{2, 7, 8, 15}}});
       },
       "conv2d_input_grad",
       "transpose reshape transpose reshape matmul reshape transpose reshape transpose"},
      {"large-window",
       {f32, {1, 2, 30, 20}},
       [](auto& b, Value x) {
         return add(b, "avg_pool2d", {x}, {{"kernel", Ints{10, 10}}, {"strides", Ints{10, 10}}});
       },
       "avg_pool2d",
       "reshape mean"},
  };
  return all;
}

Graph graph_of(const Case& c) {
  Graph graph;
  const Value x = graph.input("x", c.input);
  ops::Build b(graph);
  graph.set_outputs({c.make(b, x)});
  return graph;
}

Array values_for(const Type& type, double scale = 1) {
  Array x(type);
  RandomStream random(5, 1);
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, scale * (random.uniform() * 4 - 2));
  return x;
}

}  // namespace

TEST_CASE("every rule simplifies its case, keeps its values, and can be switched off") {
  std::set<std::string_view> tested;
  for (const Case& c : cases()) {
    CAPTURE(c.rule);
    const Rule* const rule = rules().find(c.rule);
    REQUIRE(rule);
    tested.insert(rule->name);
    const Graph before = graph_of(c), after = simplified(before);
    CHECK(operators(before) == c.before);
    CHECK(operators(after) == c.after);
    if (c.rule != "divide-by-power-of-two")  // of which divide-by-constant is the general case
      CHECK(operators(simplified(before, false, {c.rule})) != c.after);
    const std::vector<Array> inputs = {values_for(c.input)};
    const Array a = ref::evaluate(before, inputs)[0], b = ref::evaluate(after, inputs)[0];
    CHECK(test::difference(a, b) <= (rule->exact ? 0 : 1e-6));
    // Exact programs use exact rules only.
    CHECK((operators(simplified(before, true)) == c.after) == rule->exact);
  }
  for (const Rule* rule : rules().all())
    CHECK_MESSAGE((tested.contains(rule->name) || rule->name.starts_with("test-")), rule->name);
}

TEST_CASE("pooling by large windows: by blocks, or rows and columns, with the same values") {
  struct Pool {
    Shape x;
    Ints kernel, strides, pads;
    std::string after;  // of the mean
  };
  const Pool pools[] = {
      {{2, 3, 20, 30}, {10, 10}, {10, 10}, {0, 0, 0, 0}, "reshape mean"},
      {{2, 3, 23, 34}, {10, 10}, {10, 10}, {0, 0, 0, 0}, "slice reshape mean"},
      {{1, 2, 20, 20}, {20, 20}, {1, 1}, {0, 0, 0, 0}, "reshape mean"},  // all of it
      {{1, 2, 33, 12}, {12, 12}, {4, 4}, {0, 0, 0, 0}, "slice reshape mean avg_pool2d"},
      {{1, 2, 14, 15}, {9, 9}, {1, 1}, {0, 0, 0, 0}, "avg_pool2d avg_pool2d"},
      {{1, 2, 15, 15}, {9, 10}, {2, 3}, {2, 1, 4, 3}, "avg_pool2d avg_pool2d"},
      {{1, 2, 21, 22}, {9, 10}, {2, 3}, {0, 0, 0, 0}, "avg_pool2d avg_pool2d"},
      {{1, 2, 21, 22}, {10, 10}, {5, 5}, {2, 3, 4, 3}, "avg_pool2d avg_pool2d"},
      {{1, 2, 70, 1}, {66, 1}, {1, 1}, {0, 0, 0, 0}, "avg_pool2d"},
      {{1, 2, 8, 8}, {8, 8}, {1, 1}, {0, 0, 0, 0}, "avg_pool2d"},
  };
  for (size_t k = 0; k < std::size(pools); ++k)
    for (const char* op : {"avg_pool2d", "max_pool2d_values"})
      for (const bool counted : {true, false}) {
        CAPTURE(k);
        CAPTURE(op);
        const Pool& pool = pools[k];
        const bool mean = std::string_view(op) == "avg_pool2d";
        Graph graph;
        Attributes attributes{{"kernel", pool.kernel}, {"strides", pool.strides}, {"pads", pool.pads}};
        if (mean) attributes.set("count_include_pad", counted);
        graph.set_outputs({graph.add(op, {graph.input("x", {f32, pool.x})}, attributes)});
        const Graph after = simplified(graph);
        if (mean) CHECK(operators(after) == pool.after);
        const std::vector<Array> inputs = {values_for({f32, pool.x})};
        CHECK(test::difference(ref::evaluate(graph, inputs)[0], ref::evaluate(after, inputs)[0]) <=
              (mean ? 1e-6 : 0));
        CHECK(operators(simplified(after)) == operators(after));
      }
}

TEST_CASE("transposed convolutions of patches: those that overlap, or leave rows over, are none") {
  struct Other {
    Shape window, result;
    Attributes attributes;
  };
  const std::vector<Other> others = {
      {{4, 3, 2, 2}, {2, 3, 5, 5}, {}},                         // steps of 1
      {{4, 3, 2, 2}, {2, 3, 9, 8}, {{"strides", Ints{2, 2}}}},  // a row is left over
      {{4, 3, 2, 2}, {2, 6, 8, 8}, {{"strides", Ints{2, 2}}, {"groups", int64_t{2}}}},
      {{4, 3, 2, 2}, {2, 3, 9, 9}, {{"strides", Ints{2, 2}}, {"dilations", Ints{2, 2}}}},
      {{4, 3, 2, 2}, {2, 3, 6, 6}, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
      {{4, 3, 1, 1}, {2, 3, 4, 4}, {}},
  };
  for (size_t k = 0; k < others.size(); ++k) {
    CAPTURE(k);
    Graph graph;
    const Value x = graph.input("x", {f32, {2, 4, 4, 4}}), w = graph.input("w", {f32, others[k].window});
    Attributes attributes = others[k].attributes;
    attributes.set("input_shape", others[k].result);
    graph.set_outputs({graph.add("conv2d_input_grad", {x, w}, attributes)});
    CHECK(operators(simplified(graph)) == "conv2d_input_grad");
  }
}

TEST_CASE("log-sum-exp neither overflows nor loses small terms") {
  Graph graph;
  const Value x = graph.input("x", {f32, {4, 2}});
  ops::Build b(graph);
  graph.set_outputs({b.unary("log", b.sum(b.unary("exp", x), {1}, false))});
  const Graph after = simplified(graph);
  const double infinity = INFINITY;
  const Array values = Array::of(
      f32, {4, 2}, std::vector<double>{1000, 1000, -1000, -1000, -infinity, -infinity, 3, infinity});
  const Array result = ref::evaluate(after, std::vector<Array>{values})[0];
  CHECK(result.at(0) == doctest::Approx(1000 + std::log(2.0)));
  CHECK(result.at(1) == doctest::Approx(-1000 + std::log(2.0)));
  CHECK(result.at(2) == -infinity);
  CHECK(result.at(3) == infinity);
  // What it makes is left alone the next time.
  CHECK(operators(simplified(after)) == operators(after));
}

TEST_CASE("rules keep the values of random graphs") {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    const test::RandomGraph made = test::random_graph(seed, 25);
    const std::vector<Array> expected = ref::evaluate(made.graph, made.inputs);
    for (const bool exact : {false, true}) {
      const std::vector<Array> got = ref::evaluate(simplified(made.graph, exact), made.inputs);
      REQUIRE(got.size() == expected.size());
      for (size_t i = 0; i < got.size(); ++i)
        CHECK(test::difference(got[i], expected[i]) <= (exact ? 0 : 1e-4));
    }
  }
}

#include <cmath>
#include <doctest/doctest.h>
#include <functional>

#include <millrace/operator.h>
#include <millrace/program.h>

#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "passes/pass.h"
#include "support/graphs.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

using Ints = std::vector<int64_t>;
using Write = std::function<Value(ops::Build&)>;

Graph attention_written(const Write& write) {
  Graph graph;
  ops::Build b(graph);
  graph.set_outputs({write(b)});
  return graph;
}

Graph recognised(const Graph& graph) {
  static const Target target;
  Graph result = passes().at("recognise-attention").run(graph, {target, "fp32", ref::evaluate_node});
  result.verify();
  return result;
}

/// It is recognised as `op`, nothing of the softmax is left, and the values are the same, also compiled.
void check_recognised(const Write& write, std::string_view op) {
  const Graph graph = attention_written(write), result = recognised(graph);
  CHECK(test::count(result, op) == 1);
  CHECK(test::count(result, "softmax") == 0);
  CHECK(test::count(result, "matmul") == 0);
  const std::vector<Array> inputs = test::inputs_for(graph);
  const Array expected = ref::evaluate(graph, inputs)[0];
  CHECK(test::difference(ref::evaluate(result, inputs)[0], expected) < 1e-5);
  Program program = Program::compile(graph);
  CHECK(test::difference(test::run(program, inputs)[0], expected) < 1e-5);
}

/// It is left as it is.
void check_left(const Write& write) {
  const Graph result = recognised(attention_written(write));
  CHECK(test::count(result, "softmax") == 1);
  CHECK(test::count(result, "attention") + test::count(result, "self_attention") == 0);
}

Value heads_input(ops::Build& b, const char* name, int64_t length = 6) {
  return b.graph().input(name, {f32, {2, 3, length, 8}});
}

/// As PyTorch's exporter writes it; q, k and v are these thirds of the projection.
Value merged_attention(ops::Build& b, const Ints& thirds) {
  const Value linear = b.graph().input("x", {f32, {2, 6, 72}});
  const Value turned = b.transpose(b.reshape(linear, {2, 6, 3, 3, 8}), {2, 0, 3, 1, 4});
  std::vector<Value> parts;
  for (const int64_t i : thirds)
    parts.push_back(b.graph().add("slice", {turned},
                                  {{"starts", Ints{i, 0, 0, 0, 0}}, {"ends", Ints{i + 1, 2, 3, 6, 8}}}));
  const Value q = b.reshape(parts[0], {2, 3, 6, 8}), v = b.reshape(parts[2], {2, 3, 6, 8});
  const Value k = b.reshape(b.transpose(b.reshape(parts[1], {6, 6, 8}), {0, 2, 1}), {2, 3, 8, 6});
  return b.transpose(b.matmul(b.softmax(b.matmul(b.mul(q, 0.6), b.mul(k, 0.6)), -1), v), {0, 2, 1, 3});
}

}  // namespace

TEST_CASE("attention of a merged projection is recognised as PyTorch's exporter writes it") {
  check_recognised([](ops::Build& b) { return merged_attention(b, {0, 1, 2}); }, "self_attention");
  // In another order they are three values.
  check_recognised([](ops::Build& b) { return merged_attention(b, {0, 2, 1}); }, "attention");
}

TEST_CASE("attention of three projections with a mask is recognised as other exporters write it") {
  const auto split = [](ops::Build& b, const char* name, const Ints& order) {
    return b.transpose(b.reshape(b.graph().input(name, {f32, {2, 6, 24}}), {2, 6, 3, 8}), order);
  };
  check_recognised(
      [&](ops::Build& b) {
        const Value scores = b.matmul(split(b, "q", {0, 2, 1, 3}), split(b, "k", {0, 2, 3, 1}));
        const Value masked =
            b.add(b.div(scores, std::sqrt(8.0)), b.graph().input("mask", {f32, {2, 1, 1, 6}}));
        return b.matmul(b.softmax(masked, 3), split(b, "v", {0, 2, 1, 3}));
      },
      "attention");
}

TEST_CASE("attention between two sequences, with the keys stored or multiplied transposed, is recognised") {
  check_recognised(
      [](ops::Build& b) {
        const Value scores = b.matmul(heads_input(b, "q"), heads_input(b, "k", 9), false, true);
        return b.matmul(b.softmax(b.mul(scores, 0.25), -1), heads_input(b, "v", 9));
      },
      "attention");
  check_recognised(
      [](ops::Build& b) {
        const Value k = b.graph().input("k", {f32, {2, 3, 8, 9}});
        return b.matmul(b.softmax(b.matmul(heads_input(b, "q"), k), -1), heads_input(b, "v", 9));
      },
      "attention");
}

TEST_CASE(
    "attention whose scores are replaced where a mask says so is recognised as models of the next token "
    "write it") {
  Array later(boolean, {1, 1, 6, 6}), before(boolean, {6, 6});
  for (int64_t i = 0; i < 36; ++i) {
    later.set(i, i % 6 > i / 6);
    before.set(i, i % 6 <= i / 6);
  }
  const auto written = [](ops::Build& b, const std::function<Value(Value)>& mask) {
    const Value scores = b.matmul(heads_input(b, "q"), heads_input(b, "k"), false, true);
    return b.matmul(b.softmax(mask(b.mul(scores, 0.35)), -1), heads_input(b, "v"));
  };
  const auto number = [](ops::Build& b, Value scores, double low) {
    return b.broadcast(b.scalar(f32, low), b.shape(scores));
  };
  const auto repeated = [](ops::Build& b, Value scores, const Array& mask) {
    return b.broadcast(b.graph().constant(mask), b.shape(scores));
  };
  for (const double low : {-static_cast<double>(INFINITY), -3.4028234663852886e38, -1e4}) {
    CAPTURE(low);
    check_recognised(
        [&](ops::Build& b) {
          return written(b, [&](Value x) { return b.select(repeated(b, x, later), number(b, x, low), x); });
        },
        "attention");
    check_recognised(
        [&](ops::Build& b) {
          return written(b, [&](Value x) { return b.select(repeated(b, x, before), x, number(b, x, low)); });
        },
        "attention");
    // And one that is added, before or after.
    for (const bool after : {false, true})
      check_recognised(
          [&](ops::Build& b) {
            return written(b, [&](Value x) {
              const auto added = [&](Value to) {
                return b.add(b.broadcast(b.graph().input("mask", {f32, {2, 1, 1, 6}}), b.shape(to)), to);
              };
              if (!after) x = added(x);
              x = b.select(repeated(b, x, later), number(b, x, low), x);
              return after ? added(x) : x;
            });
          },
          "attention");
  }
  // Rows that see nothing get equal shares, also where the mask is an input.
  const Write by_input = [&](ops::Build& b) {
    return written(b, [&](Value x) {
      const Value mask = b.graph().input("seen", {boolean, {2, 1, 6, 6}});
      return b.select(b.broadcast(mask, b.shape(x)), x, number(b, x, -3.4028234663852886e38));
    });
  };
  check_recognised(by_input, "attention");
  const Graph graph = attention_written(by_input), result = recognised(graph);
  std::vector<Array> inputs = test::inputs_for(graph);
  for (int64_t i = 0; i < inputs[2].count(); ++i) inputs[2].set(i, 0);
  CHECK(test::difference(ref::evaluate(result, inputs)[0], ref::evaluate(graph, inputs)[0]) < 1e-5);
}

TEST_CASE("zeros in place of what is no number are attention's own, where a query sees no key") {
  // As PyTorch's exporter writes scaled_dot_product_attention with a mask.
  const auto guarded = [](ops::Build& b, double otherwise, bool shown) {
    const Value mask = b.broadcast(b.graph().input("mask", {f32, {2, 1, 6, 6}}), {2, 3, 6, 6});
    const Value scores = b.add(b.matmul(heads_input(b, "q"), heads_input(b, "k"), false, true), mask);
    const Value weights = b.softmax(scores, -1);
    const Value where = b.unary("is_nan", shown ? scores : weights);
    return b.matmul(b.select(where, b.fill(weights, otherwise), weights), heads_input(b, "v"));
  };
  const Write write = [&](ops::Build& b) { return guarded(b, 0, false); };
  check_recognised(write, "attention");
  const Graph graph = attention_written(write), result = recognised(graph);
  std::vector<Array> inputs = test::inputs_for(graph);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (graph.input_names()[i] == "mask")
      for (int64_t at = 0; at < 6; ++at) inputs[i].set(at, -INFINITY);  // the first query
  const Array expected = ref::evaluate(graph, inputs)[0];
  CHECK(expected.at(0) == 0);
  CHECK(test::difference(ref::evaluate(result, inputs)[0], expected) < 1e-5);
  check_left([&](ops::Build& b) { return guarded(b, 1, false); });
  check_left([&](ops::Build& b) { return guarded(b, 0, true); });
}

TEST_CASE("attention is recognised where all samples' heads are one axis of its products") {
  constexpr double lowest = -3.4028234663852886e38;
  const auto all_heads = [](ops::Build& b, const char* name) {
    return b.graph().input(name, {f32, {6, 6, 8}});
  };
  const auto added = [](ops::Build& b, Value x, const Shape& mask) {
    return b.add(x, b.broadcast(b.graph().input("mask", {f32, mask}), b.shape(x)));
  };
  for (const bool transposed : {false, true}) {
    const auto scores = [&](ops::Build& b) {
      const Value q = all_heads(b, "q");
      if (!transposed) return b.matmul(q, all_heads(b, "k"), false, true);
      return b.matmul(q, b.transpose(all_heads(b, "k"), {0, 2, 1}));
    };
    // Throughout, with numbers of their own for each head (ALiBi) or the same for all.
    for (const Shape& mask : {Shape{6, 1, 6}, Shape{6, 6, 6}, Shape{1, 6, 6}, Shape{6, 6}})
      check_recognised(
          [&](ops::Build& b) {
            const Value x = added(b, b.mul(scores(b), 0.3), mask);
            return b.matmul(b.softmax(x, -1), all_heads(b, "v"));
          },
          "attention");
    // Seen as [batch, heads, queries, keys] for the masks, or for the softmax, too.
    for (const bool softmax : {false, true})
      check_recognised(
          [&](ops::Build& b) {
            Value x = added(b, b.mul(scores(b), 0.3), {6, 1, 6});
            const Value seen = b.broadcast(b.graph().input("seen", {boolean, {2, 1, 6, 6}}), {2, 3, 6, 6});
            x = b.reshape(x, {2, 3, 6, 6});
            x = b.binary("maximum", b.select(seen, x, b.fill(x, lowest)), b.fill(x, lowest));
            if (softmax) x = b.softmax(x, -1);
            x = b.reshape(x, {6, 6, 6});
            return b.matmul(softmax ? x : b.softmax(x, -1), all_heads(b, "v"));
          },
          "attention");
  }
  // Too wide for heads.
  check_left([](ops::Build& b) {
    const auto wide = [&](const char* name) { return b.graph().input(name, {f32, {2, 6, 300}}); };
    return b.matmul(b.softmax(b.matmul(wide("q"), wide("k"), false, true), -1), wide("v"));
  });
  // Nothing is done for an empty batch.
  check_left([](ops::Build& b) {
    const auto none = [&](const char* name) { return b.graph().input(name, {f32, {0, 6, 8}}); };
    return b.matmul(b.softmax(b.matmul(none("q"), none("k"), false, true), -1), none("v"));
  });
  // Another order of the axes is none of heads.
  check_left([&](ops::Build& b) {
    const Value x = b.reshape(b.matmul(all_heads(b, "q"), all_heads(b, "k"), false, true), {6, 3, 2, 6});
    return b.matmul(b.reshape(b.softmax(x, -1), {6, 6, 6}), all_heads(b, "v"));
  });
  check_left([&](ops::Build& b) {
    const Value x = b.matmul(all_heads(b, "q"), all_heads(b, "k"), false, true);
    return b.matmul(b.softmax(b.binary("maximum", x, b.fill(x, -1e4)), -1), all_heads(b, "v"));
  });
}

TEST_CASE("keys and values that are repeated for neighbouring heads are taken as they were before") {
  // As LLaMA's are written: [batch, 2, length, width] for 6 heads; or one for all.
  for (const int64_t count : {2, 1, 6}) {
    const auto repeated = [&](ops::Build& b, const char* name) {
      const Value few = b.graph().input(name, {f32, {2, count, 6, 8}});
      if (count == 1) return b.broadcast(few, {2, 6, 6, 8});
      if (count == 6) return few;
      const Value apart = b.reshape(few, {2, count, 1, 6, 8});
      return b.reshape(b.broadcast(apart, {2, count, 6 / count, 6, 8}), {2, 6, 6, 8});
    };
    const Write write = [&](ops::Build& b) {
      const Value q = b.graph().input("q", {f32, {2, 6, 6, 8}});
      const Value k = b.transpose(repeated(b, "k"), {0, 1, 3, 2});
      return b.matmul(b.softmax(b.mul(b.matmul(q, k), 0.35), -1), repeated(b, "v"));
    };
    check_recognised(write, "attention");
    const Graph result = recognised(attention_written(write));
    CHECK(test::count(result, "broadcast") == 0);
  }
  // Heads that are apart share one of each: nothing is taken away.
  const Write apart = [](ops::Build& b) {
    const auto repeated = [&](const char* name) {
      const Value few = b.reshape(b.graph().input(name, {f32, {2, 2, 6, 8}}), {2, 1, 2, 6, 8});
      return b.reshape(b.broadcast(few, {2, 3, 2, 6, 8}), {2, 6, 6, 8});
    };
    const Value q = b.graph().input("q", {f32, {2, 6, 6, 8}}), k = b.transpose(repeated("k"), {0, 1, 3, 2});
    return b.matmul(b.softmax(b.matmul(q, k), -1), repeated("v"));
  };
  check_recognised(apart, "attention");
  CHECK(test::count(recognised(attention_written(apart)), "broadcast") == 2);
}

TEST_CASE("scores that are replaced by what is no mask are left as they are") {
  const auto left = [](const Array& where, double low) {
    check_left([&](ops::Build& b) {
      Value x = b.matmul(heads_input(b, "q"), heads_input(b, "k"), false, true);
      x = b.select(b.broadcast(b.graph().constant(where), b.shape(x)), b.fill(x, low), x);
      return b.matmul(b.softmax(x, -1), heads_input(b, "v"));
    });
  };
  Array some(boolean, {6, 6}), all(boolean, {6, 6});
  for (int64_t i = 0; i < 36; ++i) {
    some.set(i, i % 6 > i / 6);
    all.set(i, i / 6 == 3);  // the fourth query sees nothing: added to, its scores would still differ
  }
  left(some, -5);
  left(some, 1e30);
  left(all, -1e4);
  left(Array::scalar(boolean, 1), -1e4);
  // A double does not lose its score in such a number.
  check_left([](ops::Build& b) {
    const auto heads = [&](const char* name) { return b.graph().input(name, {f64, {2, 3, 6, 8}}); };
    Value x = b.matmul(heads("q"), heads("k"), false, true);
    const Value mask = b.graph().input("seen", {boolean, {2, 3, 6, 6}});
    return b.matmul(b.softmax(b.select(mask, x, b.fill(x, -1e12)), -1), heads("v"));
  });
  // By an input nobody knows what it leaves.
  check_left([](ops::Build& b) {
    Value x = b.matmul(heads_input(b, "q"), heads_input(b, "k"), false, true);
    const Value mask = b.graph().input("seen", {boolean, {2, 3, 6, 6}});
    return b.matmul(b.softmax(b.select(mask, x, b.fill(x, -1e9)), -1), heads_input(b, "v"));
  });
}

TEST_CASE("what is no attention, or is read in between, is left as it is") {
  const auto plain = [](ops::Build& b, const std::function<Value(Value)>& change, int64_t axis) {
    const Value scores = change(b.matmul(heads_input(b, "q"), heads_input(b, "k"), false, true));
    return b.softmax(scores, axis);
  };
  const auto same = [](Value x) { return x; };
  // The weights are an output, too.
  check_left([&](ops::Build& b) {
    const Value weights = plain(b, same, -1);
    return b.add(b.matmul(weights, heads_input(b, "v")), b.sum(weights, {3}, true));
  });
  check_left([&](ops::Build& b) {
    const Value weights = plain(b, same, -1), v = b.graph().input("v", {f32, {6, 6, 8}});
    const Value mixed = b.reshape(b.matmul(b.reshape(weights, {6, 6, 6}), v), {2, 3, 6, 8});
    return b.add(mixed, b.sum(weights, {3}, true));
  });
  // Along the queries.
  check_left([&](ops::Build& b) { return b.matmul(plain(b, same, 2), heads_input(b, "v")); });
  // Something else happens to the scores.
  check_left([&](ops::Build& b) {
    return b.matmul(plain(
                        b, [&](Value x) { return b.unary("tanh", x); }, -1),
                    heads_input(b, "v"));
  });
  // Two are added of which none is a product.
  check_left([&](ops::Build& b) {
    return b.matmul(plain(
                        b, [&](Value x) { return b.add(b.unary("tanh", x), b.unary("exp", x)); }, -1),
                    heads_input(b, "v"));
  });
}

TEST_CASE("values may be of another width than keys") {
  const auto scores = [](ops::Build& b) {
    return b.softmax(b.matmul(heads_input(b, "q"), heads_input(b, "k", 7), false, true), -1);
  };
  check_recognised(
      [&](ops::Build& b) {
        return b.matmul(scores(b), b.graph().input("v", {f32, {2, 3, 7, 5}}));
      },
      "attention");
  // Shared by three heads, and with all heads as one axis.
  check_recognised(
      [&](ops::Build& b) {
        const auto repeated = [&](const char* name, int64_t width) {
          return b.broadcast(b.graph().input(name, {f32, {2, 1, 6, width}}), {2, 3, 6, width});
        };
        const Value q = heads_input(b, "q"), k = b.transpose(repeated("k", 8), {0, 1, 3, 2});
        return b.matmul(b.softmax(b.matmul(q, k), -1), repeated("v", 5));
      },
      "attention");
  check_recognised(
      [&](ops::Build& b) {
        const auto heads = [&](const char* name, int64_t width) {
          return b.graph().input(name, {f32, {6, 7, width}});
        };
        return b.matmul(b.softmax(b.matmul(heads("q", 8), heads("k", 8), false, true), -1), heads("v", 5));
      },
      "attention");
}

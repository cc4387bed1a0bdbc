// Networks are built once for a named batch and specialised to numbers.
#include <doctest/doctest.h>

#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

using Ints = std::vector<int64_t>;

/// A picture network, an attention layer and their losses, for any batch.
Graph network(const Dim& batch) {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {batch, 2, 6, 6}}), t = graph.input("t", {i64, {batch}});
  const Value w = graph.input("w", {f32, {4, 2, 3, 3}}), scale = graph.input("scale", {f32, {4}});
  const Value q = graph.input("q", {f32, {batch, 2, 3, 4}}), key = graph.input("key", {i64, {2}});
  const Value conv = graph.add("conv2d", {x, w}, {{"pads", Ints{1, 1, 1, 1}}});
  const Value norm = graph.add("batch_norm", {conv, scale, scale});
  const Value pooled = graph.add("max_pool2d", {norm}, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  const Value mean = graph.add("avg_pool2d", {pooled}, {{"kernel", Ints{3, 3}}});
  const Value logits = graph.add("dropout", {b.reshape(mean, {batch, 4}), key}, {{"p", 0.5}});
  const Value mixed = graph.add("attention", {q, q, q}, {{"causal", true}});
  graph.set_outputs({graph.add("cross_entropy", {logits, t}, {{"label_smoothing", 0.1}}),
                     graph.add("layer_norm", {mixed}), graph.add("gelu", {logits})});
  return graph;
}

}  // namespace

TEST_CASE("a network for a named batch, specialised, is the network for that batch") {
  const Graph named = network(Dim::named("batch")), fixed = network(5);
  const Graph bound = specialise(named, {{"batch", 5}});
  bound.verify();
  std::vector<Array> inputs;
  for (const Value& input : fixed.inputs()) {
    Array array(fixed.type(input));
    for (int64_t i = 0; i < array.count(); ++i)
      array.set(i, array.dtype().is_float() ? static_cast<double>(i * 37 % 23) / 10 - 1
                                            : static_cast<double>(i % 4));
    inputs.push_back(array);
  }
  const std::vector<Array> expected = ref::evaluate(fixed, inputs), found = ref::evaluate(bound, inputs);
  for (size_t o = 0; o < expected.size(); ++o) CHECK(found[o].identical(expected[o]));
}

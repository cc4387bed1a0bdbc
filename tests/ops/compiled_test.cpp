// Composites and their gradients, inlined, fused and compiled, against the reference back end.
#include <algorithm>
#include <doctest/doctest.h>

#include <millrace/program.h>

#include "autodiff/gradient.h"
#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "ir/operators.h"
#include "support/random_graph.h"
#include "support/samples.h"

using namespace millrace;

namespace {

/// The sample's node and, where it can be differentiated, the gradients of its first result.
Graph with_gradients(const Operator& op, const Sample& sample) {
  Graph graph = make_graph(op, sample);
  std::vector<Value> outputs = graph.outputs(), wrt;
  for (const Value& input : graph.inputs())
    if (graph.type(input).dtype.is_float()) wrt.push_back(input);
  const Value first = outputs[0];
  if (graph.type(first).dtype.is_float() && !wrt.empty()) {
    Array weights(graph.type(first));
    for (int64_t i = 0; i < weights.count(); ++i) weights.set(i, 0.25 * static_cast<double>(i % 7) - 0.5);
    const Value seed = graph.constant(weights);
    for (const Value& g : gradients(graph, std::span(&first, 1), std::span(&seed, 1), wrt))
      outputs.push_back(g);
  }
  graph.set_outputs(outputs);
  return graph;
}

}  // namespace

TEST_CASE("composites, loops and their gradients give on cpu what they give on ref") {
  for (const Operator* op : library_operators()) {
    const bool with_body = op->op_class == OpClass::composite || op->runs_body();
    if (!with_body || op->samples.empty()) continue;
    for (const Sample& sample : op->samples) {
      INFO(describe(*op, sample));
      const Graph graph = with_gradients(*op, sample);
      const std::vector<Array> inputs = make_inputs(*op, sample), expected = ref::evaluate(graph, inputs);
      Program program = Program::compile(graph);
      const bool half = std::any_of(inputs.begin(), inputs.end(), [](const Array& a) {
        return a.dtype().is_float() && a.dtype().bits == 16;
      });
      CHECK(test::difference(test::run(program, inputs), expected) < (half ? 3e-2 : 1e-4));
    }
  }
}

TEST_CASE("the sums of batch normalisation's gradient and what they sum are one pass over memory") {
  Graph graph;
  const Value x = graph.input("x", {f32, {8, 4, 6, 6}}), w = graph.input("w", {f32, {4}});
  const Value y = graph.add("relu", {graph.add("batch_norm", {x, w, w})});
  const Value seed = graph.input("g", {f32, {8, 4, 6, 6}});
  const Value wrt[] = {x, w};
  graph.set_outputs(gradients(graph, std::span(&y, 1), std::span(&seed, 1), wrt));
  std::string text = Program::compile(graph).explain();
  int with_both_sums = 0;
  for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
    const std::string line = text.substr(0, end);
    const size_t first = line.find(" sum");
    with_both_sums += first != std::string::npos && line.find(" sum", first + 1) != std::string::npos;
  }
  CHECK(with_both_sums == 1);
}

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include <millrace/operator.h>

#include "autodiff/gradient.h"
#include "backend/ref/evaluate.h"
#include "base/format.h"

using namespace millrace;

namespace {

using Ints = std::vector<int64_t>;

struct Stored {
  DType dtype;
  Ints sizes;
  std::vector<double> values;
  Array array() const { return Array::of(dtype, Shape(sizes), values); }
};
using Arrays = std::vector<Stored>;

struct Case {
  std::string name, op;
  Attributes attributes;
  Arrays operands, results, weights, gradients;
};

/// What PyTorch computes, in float64 but for casts and integers.
const std::vector<Case>& cases() {
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  static const std::vector<Case> list = {
#define CASE(NAME, OP, ATTRIBUTES, OPERANDS, RESULTS, WEIGHTS, GRADIENTS, END) \
  {NAME, OP, ATTRIBUTES, OPERANDS, RESULTS, WEIGHTS, GRADIENTS},
#include "ops/reference_values.inc"
#include "ops/reference_values_core.inc"
#undef CASE
  };
  return list;
}

void check_close(const Array& found, const Stored& expected, const std::string& what) {
  INFO(what);
  REQUIRE(found.type() == Type{expected.dtype, Shape(expected.sizes)});
  for (int64_t i = 0; i < found.count(); ++i) {
    const double a = found.at(i), b = expected.values[i];
    INFO("element ", i, ": ", a, ", PyTorch has ", b);
    CHECK((a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-6 * (1 + std::abs(b))));
  }
}

}  // namespace

TEST_CASE("operators and their gradients give the values that PyTorch gives") {
  for (const Case& c : cases()) {
    Graph graph;
    std::vector<Value> operands, wrt;
    std::vector<Array> inputs;
    for (const Stored& operand : c.operands) {
      inputs.push_back(operand.array());
      operands.push_back(graph.input(fmt::format("x{}", operands.size()), inputs.back().type()));
      if (operand.dtype.is_float()) wrt.push_back(operands.back());
    }
    const Value first = graph.add(c.op, operands, c.attributes);
    std::vector<Value> outputs;
    for (size_t r = 0; r < c.results.size(); ++r) outputs.push_back({first.node, static_cast<int32_t>(r)});
    if (!c.weights.empty()) {
      const Value seed = graph.constant(c.weights[0].array());
      for (const Value& g : gradients(graph, std::span(&first, 1), std::span(&seed, 1), wrt))
        outputs.push_back(g);
    }
    graph.set_outputs(outputs);
    const std::vector<Array> found = ref::evaluate(graph, inputs);
    for (size_t r = 0; r < c.results.size(); ++r)
      check_close(found[r], c.results[r], fmt::format("{}: result {}", c.name, r));
    for (size_t g = 0; g < c.gradients.size(); ++g)
      check_close(found[c.results.size() + g], c.gradients[g], fmt::format("{}: gradient {}", c.name, g));
  }
}

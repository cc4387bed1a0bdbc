// Every operator's samples, run through types, gradients and their mutation.
#include "support/samples.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include "autodiff/gradient.h"
#include "backend/ref/evaluate.h"
#include "backend/ref/registry.h"
#include "ir/operators.h"
#include "ops/build.h"

using namespace millrace;

namespace {

bool has_floats(const Sample& sample) {
  return std::any_of(sample.operands.begin(), sample.operands.end(),
                     [](const Type& type) { return type.dtype.is_float(); });
}

/// Samples that differ after in_doubles(): finite differences run in f64 anyway.
std::vector<Sample> gradient_samples(const Operator& op) {
  std::vector<Sample> found;
  if (!op.differentiable || op.is_given()) return found;
  for (const Sample& sample : op.samples) {
    if (!sample.check_gradient || !has_floats(sample)) continue;
    const Sample doubles = in_doubles(sample);
    const bool seen = std::any_of(found.begin(), found.end(), [&](const Sample& other) {
      return other.operands == doubles.operands && other.attributes == doubles.attributes &&
             other.low == doubles.low && other.values == doubles.values;
    });
    if (!seen) found.push_back(doubles);
  }
  return found;
}

int64_t elements(const Sample& sample) {
  int64_t total = 0;
  for (const Type& type : sample.operands) total += type.shape.count();
  return total;
}

}  // namespace

TEST_CASE("every sample of every operator evaluates to the types of its rule") {
  for (const Operator* op : library_operators()) {
    for (const Sample& sample : op->samples) {
      CAPTURE(describe(*op, sample));
      const Graph graph = make_graph(*op, sample);
      CHECK_NOTHROW(graph.verify());
      const std::vector<Array> results = ref::evaluate(graph, make_inputs(*op, sample));
      for (size_t r = 0; r < results.size(); ++r) CHECK(results[r].type() == graph.type(graph.outputs()[r]));
    }
  }
}

TEST_CASE("results lie within the bounds that operators declare") {
  for (const Operator* op : library_operators()) {
    for (const Sample& sample : op->samples) {
      CAPTURE(describe(*op, sample));
      for (const Array& result : ref::evaluate(make_graph(*op, sample), make_inputs(*op, sample)))
        for (int64_t i = 0; i < result.count() && result.dtype().is_float(); ++i)
          if (const double x = result.at(i); !std::isnan(x)) CHECK((x >= op->lowest && x <= op->highest));
    }
  }
}

TEST_CASE("element bodies compute what the reference back end does") {
  for (const Operator* op : library_operators()) {
    if (!op->element) continue;
    CAPTURE(op->name);
    CHECK((ref::find_function(op->name) != nullptr));  // one that is not the body
    for (const Sample& sample : op->samples) {
      const Graph graph = make_graph(*op, sample);
      const std::vector<Array> inputs = make_inputs(*op, sample);
      const Array expected = ref::evaluate(graph, inputs)[0];
      const Array found = ref::interpret_element_body(graph.node(graph.outputs()[0]), inputs)[0];
      double worst = 0;
      for (int64_t i = 0; i < found.count(); ++i)
        worst = std::max(worst, std::fabs(found.at(i) - expected.at(i)) / (1 + std::fabs(expected.at(i))));
      CAPTURE(describe(*op, sample));
      CHECK(worst < (expected.dtype() == f64 ? 1e-14 : 1e-6));
    }
  }
}

TEST_CASE("gradients of every operator agree with finite differences") {
  for (const Operator* op : library_operators())
    for (const Sample& sample : gradient_samples(*op)) CHECK(check_gradient(*op, sample).value_or("") == "");
}

TEST_CASE("the gradient of a composite's body takes its operands as independent of each other") {
  // y = body(x, sin x): what flows through sin x must arrive at x once.
  Graph graph;
  const Value x = graph.input("x", {f64, {7}});
  auto body = std::make_shared<Graph>();
  const Value u = body->input("u", {f64, {7}}), v = body->input("v", {f64, {7}});
  body->set_outputs({body->add("mul", {u, body->add("square", {v})})});
  const Value y = graph.add_with_body(get_operator("fused"), {x, graph.add("sin", {x})}, {}, std::move(body));
  const Value loss = graph.add("sum", {y});
  graph.set_outputs({loss});
  Graph with_gradient = graph;
  with_gradient.set_outputs(gradients(with_gradient, loss, std::vector<Value>{x}));
  Array at(f64, {7});
  for (int64_t i = 0; i < 7; ++i) at.set(i, 0.4 * static_cast<double>(i) - 1.1);
  const Array found = ref::evaluate(with_gradient, std::vector<Array>{at})[0];
  for (int64_t i = 0; i < 7; ++i) {
    const auto loss_at = [&](double by) {
      Array moved = at.clone();
      moved.set(i, at.at(i) + by);
      return ref::evaluate(graph, std::vector<Array>{moved})[0].at(0);
    };
    CHECK(found.at(i) == doctest::Approx((loss_at(1e-5) - loss_at(-1e-5)) / 2e-5).epsilon(1e-5));
  }
}

TEST_CASE("gradients of gradients agree with finite differences") {
  for (const Operator* op : library_operators())
    for (const Sample& sample : gradient_samples(*op))
      if (elements(sample) <= 300) CHECK(check_gradient(*op, sample, 2).value_or("") == "");
}

TEST_CASE("a gradient that is wrong by one percent is noticed") {
  for (const Operator* op : library_operators()) {
    if (!op->gradient || !op->differentiable) continue;
    const std::vector<Sample> samples = gradient_samples(*op);
    for (int operand = 0; operand < (op->max_operands < 0 ? 2 : op->max_operands); ++operand) {
      Operator mutant = *op;
      bool mutated = false;
      mutant.gradient = [&, operand](const GradientContext& c) {
        std::vector<Value> parts = op->gradient(c);
        if (operand < static_cast<int>(parts.size()) && parts[operand].valid()) {
          mutated = true;
          parts[operand] = ops::Build(c.graph).mul(parts[operand], 1.01);
        }
        return parts;
      };
      const bool noticed = std::any_of(samples.begin(), samples.end(), [&](const Sample& sample) {
        return check_gradient(mutant, sample).has_value();
      });
      CAPTURE(op->name);
      CAPTURE(operand);
      CHECK(noticed == mutated);
    }
  }
}

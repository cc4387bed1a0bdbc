#include "support/samples.h"

#include <cmath>
#include <functional>

#include <millrace/random.h>

#include "autodiff/gradient.h"
#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "ops/build.h"
#include "ops/scan.h"

namespace millrace {
namespace {

double uniform(RandomStream& random) { return random.next() * 0x1p-32 + random.next() * 0x1p-64; }

/// sum over k of sum(values[k] · random constants).
Value projection(Graph& graph, std::span<const Value> values, RandomStream& random) {
  ops::Build b(graph);
  Value total = graph.scalar(f64, 0);
  for (const Value& value : values) {
    if (graph.type(value).dtype != f64) continue;
    Array weights(graph.type(value));
    for (double& weight : weights.as<double>()) weight = 2 * uniform(random) - 1;
    total = b.add(total, b.sum(b.mul(value, graph.constant(weights)), {}, false));
  }
  return total;
}

Array random_direction(const Type& type, int kind, RandomStream& random) {
  Array direction(type);
  if (kind < 2)
    for (double& d : direction.as<double>()) d = 2 * uniform(random) - 1;
  else if (direction.count() > 0)
    direction.set(random.below(static_cast<uint32_t>(direction.count())), 1);
  return direction;
}

}  // namespace

std::vector<Array> make_inputs(const Operator&, const Sample& sample, uint64_t seed) {
  std::vector<Array> inputs;
  for (size_t k = 0; k < sample.operands.size(); ++k) {
    Array array(sample.operands[k]);
    if (const auto fixed = sample.values.find(static_cast<int>(k)); fixed != sample.values.end()) {
      inputs.push_back(Array::of(array.dtype(), array.shape(), fixed->second));
      continue;
    }
    RandomStream random(seed, k);
    for (int64_t i = 0; i < array.count(); ++i) {
      if (array.dtype().is_float())
        array.set(i, sample.low + (sample.high - sample.low) * uniform(random));
      else if (array.dtype().is_bool())
        array.set(i, random.next() & 1);
      else
        array.set_int(
            i, sample.int_low + random.below(static_cast<uint32_t>(sample.int_high - sample.int_low + 1)));
    }
    inputs.push_back(array);
  }
  return inputs;
}

Graph make_graph(const Operator& op, const Sample& sample) {
  Graph graph;
  std::vector<Value> operands, outputs;
  for (size_t k = 0; k < sample.operands.size(); ++k)
    operands.push_back(graph.input(fmt::format("x{}", k), sample.operands[k]));
  const Value result = sample.body
                           ? graph.add_with_body(op, operands, sample.attributes,
                                                 std::make_shared<const Graph>(sample.body(sample.operands)))
                           : graph.add(op, operands, sample.attributes);
  for (size_t r = 0; r < graph.node(result).types.size(); ++r)
    outputs.push_back({result.node, static_cast<int>(r)});
  graph.set_outputs(outputs);
  return graph;
}

Graph make_graph_of_one(const Operator& op, const Sample& sample, bool stacks) {
  Graph graph = make_graph(op, sample);
  Value result = graph.outputs()[0];
  if (op.runs_body()) {
    ops::Build b(graph);
    std::vector<Value> all = graph.outputs(), parts;
    if (!stacks && op.op_class == OpClass::loop)
      all.resize(static_cast<size_t>(ops::scan_of(graph.node(result)).carries));
    for (const Value& each : all) parts.push_back(b.reshape(b.cast(each, f32), {b.shape(each).count()}));
    result = parts.size() == 1 ? parts[0] : graph.add("concat", parts, {{"axis", int64_t{0}}});
  }
  graph.set_outputs({result}, {"result"});
  return graph;
}

std::string describe(const Operator& op, const Sample& sample) {
  std::string text = std::string(op.name) + "(";
  for (const Type& type : sample.operands) text += (&type == sample.operands.data() ? "" : ", ") + type.str();
  text += ")";
  for (const auto& [name, value] : sample.attributes.items()) {
    text += " " + name;
    if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) text += fmt::format("={}", *ints);
    if (const auto* shape = std::get_if<Shape>(&value)) text += "=" + shape->str();
    if (const auto* dtype = std::get_if<DType>(&value)) text += "=" + dtype->name();
    if (const auto* flag = std::get_if<bool>(&value)) text += fmt::format("={}", *flag);
    if (const auto* integer = std::get_if<int64_t>(&value)) text += fmt::format("={}", *integer);
    if (const auto* number = std::get_if<double>(&value)) text += fmt::format("={}", *number);
  }
  return sample.note.empty() ? text : text + " " + sample.note;
}

Sample in_doubles(const Sample& sample) {
  Sample copy = sample;
  for (Type& type : copy.operands)
    if (type.dtype.is_float()) type.dtype = f64;
  for (const auto& [name, value] : sample.attributes.items())
    if (const auto* dtype = std::get_if<DType>(&value); dtype && dtype->is_float())
      copy.attributes.set(name, f64);
  return copy;
}

std::optional<std::string> check_gradient(const Operator& op, const Sample& sample, int order) {
  const Sample doubles = in_doubles(sample);
  const std::vector<Array> inputs = make_inputs(op, doubles);
  Graph graph = make_graph(op, doubles);
  RandomStream random(7, order);
  std::vector<Value> floats;
  for (const Value& input : graph.inputs())
    if (graph.type(input).dtype == f64) floats.push_back(input);
  Value loss = projection(graph, graph.outputs(), random);
  for (int k = 1; k < order; ++k) loss = projection(graph, gradients(graph, loss, floats), random);
  graph.set_outputs({loss});
  const auto loss_at = [&](const std::vector<Array>& at) { return ref::evaluate(graph, at)[0].at(0); };
  Graph with_gradients = graph;
  with_gradients.set_outputs(gradients(with_gradients, loss, floats));
  const std::vector<Array> analytic = ref::evaluate(with_gradients, inputs);

  for (size_t k = 0; k < floats.size(); ++k) {
    const int operand = floats[k].node;  // inputs are the first nodes
    for (int kind = 0; kind < 5; ++kind) {
      const Array direction = random_direction(inputs[operand].type(), kind, random);
      double expected = 0, length = 0;
      for (int64_t i = 0; i < direction.count(); ++i) {
        expected += analytic[k].at(i) * direction.at(i);
        length += std::fabs(direction.at(i));
      }
      const double step = 1e-5;
      const auto moved = [&](double by) {
        std::vector<Array> at = inputs;
        at[operand] = at[operand].clone();
        for (int64_t i = 0; i < direction.count(); ++i)
          at[operand].set(i, at[operand].at(i) + by * direction.at(i));
        return loss_at(at);
      };
      const double found = (moved(step) - moved(-step)) / (2 * step);
      if (!(std::fabs(found - expected) <= 1e-6 * (1 + std::fabs(expected))))
        return fmt::format("{}: gradient {} of operand {}: {} by the rule, {} by differences",
                           describe(op, sample), order, operand, expected, found);
    }
  }
  return std::nullopt;
}

}  // namespace millrace

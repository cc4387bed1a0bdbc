#include "ops/scan.h"

#include <algorithm>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// Position `at` of an axis, which disappears.
Value sliced(onnx::ImportCall& call, Value x, int64_t axis, int64_t at) {
  if (axis >= call.b.shape(x).rank() || at >= call.b.shape(x)[static_cast<size_t>(axis)].size())
    call.refuse("its operands do not have as many slices as each other");
  const Value one = call.part(x, axis, at, at + 1);
  Shape shape = call.b.shape(one);
  shape.erase(shape.begin() + axis);
  return call.b.reshape(one, shape);
}

constexpr int64_t kMostScanned = 4096;  // steps that are written one after the other

/// What a body gives, which must be tensors of a known size.
std::vector<Value> body_results(onnx::ImportCall& call, const onnx::GraphProto& body,
                                const std::vector<Value>& arguments) {
  std::vector<Value> results;
  for (const onnx::Item& each : call.nested.inline_nested(body, onnx::Items(arguments))) {
    if (each.form != onnx::Item::Form::tensor || each.bounded_axis >= 0)
      call.refuse("its body gives what are no tensors of a known size");
    results.push_back(each.value);
  }
  return results;
}

/// Writes steps one after the other; `state` becomes what the last one carries. What the steps give besides,
/// by outputs.
std::vector<std::vector<Value>> written_steps(onnx::ImportCall& call, const onnx::GraphProto& body,
                                              std::vector<Value>& state, const std::vector<Value>& sequences,
                                              const Ints& axes, const Ints& backwards, int64_t steps) {
  std::vector<std::vector<Value>> slices(body.outputs.size() - state.size());
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<Value> arguments = state;
    for (size_t k = 0; k < sequences.size(); ++k)
      arguments.push_back(sliced(call, sequences[k], axes[k], backwards[k] != 0 ? steps - 1 - step : step));
    const std::vector<Value> results = body_results(call, body, arguments);
    for (size_t k = 0; k < state.size(); ++k) state[k] = results[k];
    for (size_t k = 0; k < slices.size(); ++k) slices[k].push_back(results[state.size() + k]);
  }
  return slices;
}

/// As before opset 9: all has a batch in front, and its first operand may say how long each sequence is.
onnx::Items of_batches(onnx::ImportCall& call, const onnx::GraphProto& body) {
  if (call.given(0))
    call.refuse("its sequences have lengths of their own; convert the model to opset 9 or later");
  const auto sequences = static_cast<size_t>(call.integer("num_scan_inputs")),
             given = static_cast<size_t>(call.count()) - 1;
  if (call.count() < 1 || sequences < 1 || sequences > given)
    call.refuse("it has fewer inputs than sequences");
  const size_t carries = given - sequences;
  if (body.outputs.size() < carries) call.refuse("its body gives too few values");
  const Ints backwards = call.ints("directions", Ints(sequences, 0));
  const Shape first = call.shape(1);
  if (first.rank() < 1 || backwards.size() != sequences)
    call.refuse("its operands have no batch, or not a direction each");
  const int64_t batch = first[0].size();
  std::vector<std::vector<Value>> results(body.outputs.size());
  int64_t steps = -1;
  for (int64_t row = 0; row < batch; ++row) {
    std::vector<Value> state, own;
    for (size_t k = 0; k < carries; ++k) state.push_back(sliced(call, call[static_cast<int>(k) + 1], 0, row));
    for (size_t k = 0; k < sequences; ++k) {
      own.push_back(sliced(call, call[static_cast<int>(carries + k) + 1], 0, row));
      if (call.b.shape(own.back()).rank() < 1) call.refuse("its sequences have no steps");
      const int64_t length = call.b.shape(own.back())[0].size();
      if (steps >= 0 && length != steps) call.refuse("its sequences have different lengths");
      steps = length;
    }
    if (steps < 1 || steps * batch > kMostScanned)
      call.refuse("it has no steps, or more than can be written one after the other");
    const auto slices = written_steps(call, body, state, own, Ints(sequences, 0), backwards, steps);
    for (size_t k = 0; k < carries; ++k) results[k].push_back(state[k]);
    for (size_t k = 0; k < slices.size(); ++k) results[carries + k].push_back(call.stacked(slices[k], 0));
  }
  if (batch < 1) call.refuse("its batch is empty");
  std::vector<Value> all;
  for (const std::vector<Value>& rows : results) all.push_back(call.stacked(rows, 0));
  return all;
}

/// How a Scan goes.
struct Course {
  size_t carries;
  int64_t steps;
  Ints axes, backwards, out_axes, out_backwards;  // of its sequences, of its stacks
};

/// The axes with one of them moved.
Value moved(onnx::ImportCall& call, Value x, int64_t from, int64_t to) {
  Ints order = onnx::numbered(0, call.b.shape(x).rank());
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return from == to ? x : call.b.transpose(x, order);
}

/// A scan of the graph, where all goes in one direction and the steps are alike; else nullopt.
std::optional<std::vector<Value>> in_graph(onnx::ImportCall& call, const onnx::GraphProto& body,
                                           const Course& course) {
  ops::ScanOperands over;
  over.length = course.steps;
  over.reverse = course.backwards[0] != 0;
  for (const Ints* all : {&course.backwards, &course.out_backwards})
    for (const int64_t each : *all)
      if ((each != 0) != over.reverse) return std::nullopt;
  std::vector<onnx::BodyArgument> arguments;
  for (size_t k = 0; k < course.carries + course.axes.size(); ++k) {
    Value value = call[static_cast<int>(k)];
    Type type = call.graph.type(value);
    if (k >= course.carries) {
      value = moved(call, value, course.axes[k - course.carries], 0);
      type.shape = call.b.shape(value);
      type.shape.erase(type.shape.begin());
    }
    (k < course.carries ? over.carries : over.sequences).push_back(value);
    arguments.push_back({type, k < body.inputs.size() ? body.inputs[k].name : "", {value}});
  }
  std::vector<Value> results;
  try {
    onnx::ControlBody made = call.nested.body_of(arguments, [&](Graph&, std::span<const Value> inputs) {
      return body_results(call, body, std::vector<Value>(inputs.begin(), inputs.end()));
    });
    over.invariants = std::move(made.captured);
    const size_t outputs = made.graph->outputs().size();
    const Value loop = ops::add_scan(call.graph, over, std::move(made.graph));
    for (size_t k = 0; k < outputs; ++k) results.push_back({loop.node, static_cast<int32_t>(k)});
  } catch (const Error&) {
    return std::nullopt;  // steps that differ, or a fault that is told when it is written out
  }
  for (size_t k = 0; k < course.out_axes.size(); ++k) {
    Value& stack = results[course.carries + k];
    stack = moved(call, stack, 0, call.axis(course.out_axes[k], call.b.shape(stack).rank()));
  }
  return results;
}

}  // namespace

/// A scan of the graph; where its steps are not alike they are written one after the other.
MILLRACE_ONNX_IMPORT(Scan) {
  const onnx::AttributeProto& body = call.attribute("body");
  if (!body.graph) call.refuse("it lacks its body");
  if (call.opset < 9) return of_batches(call, *body.graph);
  const auto sequences = static_cast<size_t>(call.integer("num_scan_inputs")),
             given = static_cast<size_t>(call.count());
  if (sequences < 1 || sequences > given) call.refuse("it has fewer inputs than sequences");
  const size_t carries = given - sequences, outputs = body.graph->outputs.size();
  if (outputs < carries) call.refuse("its body gives too few values");
  const size_t stacks = outputs - carries;
  const Ints backwards = call.ints("scan_input_directions", Ints(sequences, 0)),
             axes = call.ints("scan_input_axes", Ints(sequences, 0)),
             out_backwards = call.ints("scan_output_directions", Ints(stacks, 0)),
             out_axes = call.ints("scan_output_axes", Ints(stacks, 0));
  if (backwards.size() != sequences || axes.size() != sequences || out_backwards.size() != stacks ||
      out_axes.size() != stacks)
    call.refuse("its axes or directions are not as many as its sequences");
  Ints at;
  int64_t steps = -1;
  for (size_t k = 0; k < sequences; ++k) {
    const auto operand = static_cast<int>(carries + k);
    at.push_back(call.axis(axes[k], call.rank(operand)));
    const int64_t length = call.shape(operand)[static_cast<size_t>(at[k])].size();
    if (steps >= 0 && length != steps) call.refuse("its sequences have different lengths");
    steps = length;
  }
  if (const auto results =
          in_graph(call, *body.graph, {carries, steps, at, backwards, out_axes, out_backwards}))
    return *results;
  std::vector<Value> carried, over;
  for (size_t k = 0; k < given; ++k) (k < carries ? carried : over).push_back(call[static_cast<int>(k)]);
  if (steps < 1 || steps > kMostScanned)
    call.refuse("it has no steps, or more than can be written one after the other");
  auto slices = written_steps(call, *body.graph, carried, over, at, backwards, steps);
  for (size_t k = 0; k < stacks; ++k) {
    if (out_backwards[k] != 0) std::reverse(slices[k].begin(), slices[k].end());
    const int64_t axis = call.axis(out_axes[k], call.b.shape(slices[k][0]).rank() + 1);
    carried.push_back(call.stacked(slices[k], axis));
  }
  return carried;
}

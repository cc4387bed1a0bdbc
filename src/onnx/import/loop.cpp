#include <algorithm>
#include <cstdint>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

namespace {

constexpr int64_t kMostSteps = 1024;  // that are written one after the other

/// What the steps gave, one above the other.
Value one_above_other(onnx::ImportCall& call, const onnx::Items& steps) {
  std::vector<Value> parts;
  for (const onnx::Item& each : steps) {
    if (each.form != onnx::Item::Form::tensor || each.bounded_axis >= 0)
      call.refuse("it stacks what are no tensors of a known size");
    Shape one = call.b.shape(each.value);
    one.insert(one.begin(), Dim(1));
    parts.push_back(call.b.reshape(each.value, one));
  }
  return parts.size() == 1 ? parts[0] : call.graph.add("concat", parts, {{"axis", int64_t{0}}});
}

}  // namespace

/// A loop whose number of steps is known is written step after step.
MILLRACE_ONNX_IMPORT(Loop) {
  const onnx::AttributeProto& body = call.attribute("body");
  if (!body.graph) call.refuse("it lacks its body");
  const Ints limit = call.given(0) ? call.known_ints(0) : Ints{INT64_MAX};
  if (limit.size() != 1) call.refuse("its number of steps is no number");
  onnx::Items carried;
  for (int k = 2; k < call.count(); ++k)
    carried.push_back(call.given(k) ? call.item(k) : onnx::Item::empty());
  if (body.graph->outputs.size() < 1 + carried.size()) call.refuse("its body gives too few values");
  const size_t stacks = body.graph->outputs.size() - 1 - carried.size();
  std::vector<onnx::Items> given(stacks);
  onnx::Item going = call.given(1) ? call.item(1) : onnx::Item(call.scalar(boolean, 1));
  for (int64_t step = 0; step < limit[0]; ++step) {
    if (going.form != onnx::Item::Form::tensor) call.refuse("whether it goes on is said by no tensor");
    const Array* go = call.graph.constant_value(going.value);
    if (!go || go->count() != 1)
      throw onnx::UnknownInputs("whether it goes on is not known before the model runs",
                                onnx::inputs_behind(call.graph, going.value));
    if (go->at(0) == 0) break;
    if (step == kMostSteps) call.refuse("it has more than 1024 steps, which are written one after the other");
    Array count(i64, Shape{});
    count.set_int(0, step);
    onnx::Items arguments{call.constant(count), going};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    const onnx::Items results = call.nested.inline_nested(*body.graph, arguments);
    going = results[0];
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = results[1 + i];
    for (size_t i = 0; i < stacks; ++i) given[i].push_back(results[1 + carried.size() + i]);
  }
  for (const onnx::Items& steps : given) {
    if (steps.empty()) call.refuse("it stacks the values of no steps, whose shape is not known");
    carried.emplace_back(one_above_other(call, steps));
  }
  return carried;
}

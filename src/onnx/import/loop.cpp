#include <algorithm>
#include <cstdint>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

namespace {

constexpr int64_t kMostSteps = 1024;  // that are written one after the other

}  // namespace

/// A loop whose number of steps is known is written step after step.
MILLRACE_ONNX_IMPORT(Loop) {
  const onnx::AttributeProto& body = call.attribute("body");
  if (!body.graph) call.refuse("it lacks its body");
  const int64_t steps = call.given(0) ? call.known_ints(0).at(0) : INT64_MAX;
  std::vector<Value> carried;
  for (int k = 2; k < call.count(); ++k) carried.push_back(call[k]);
  const size_t stacked =
      body.graph->outputs.size() - 1 - std::min(carried.size(), body.graph->outputs.size() - 1);
  std::vector<std::vector<Value>> stacks(stacked);
  Value going = call.given(1) ? call[1] : call.scalar(boolean, 1);
  int64_t step = 0;
  for (; step < steps; ++step) {
    const Array* go = call.graph.constant_value(going);
    if (!go) call.refuse("whether it goes on is not known before the model runs");
    if (go->at(0) == 0) break;
    if (step == kMostSteps) call.refuse("it has too many steps");
    Array count(i64, Shape{});
    count.set_int(0, step);
    std::vector<Value> arguments{call.constant(count), going};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    const std::vector<Value> results = call.nested.inline_nested(*body.graph, arguments);
    if (results.size() < 1 + carried.size()) call.refuse("its body gives too few values");
    going = results[0];
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = results[1 + i];
    for (size_t i = 0; i < stacked; ++i) {
      Shape one = call.b.shape(results[1 + carried.size() + i]);
      one.insert(one.begin(), Dim(1));
      stacks[i].push_back(call.b.reshape(results[1 + carried.size() + i], one));
    }
  }
  for (std::vector<Value>& stack : stacks) {
    if (stack.empty()) call.refuse("it stacks the values of no steps, whose shape is not known");
    carried.push_back(stack.size() == 1 ? stack[0] : call.graph.add("concat", stack, {{"axis", int64_t{0}}}));
  }
  return carried;
}

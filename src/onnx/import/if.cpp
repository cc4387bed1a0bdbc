#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

/// Where the condition is known, its branch; else both are computed, and one is taken.
MILLRACE_ONNX_IMPORT(If) {
  const onnx::AttributeProto &then = call.attribute("then_branch"),
                             &otherwise = call.attribute("else_branch");
  if (!then.graph || !otherwise.graph) call.refuse("it lacks a branch");
  if (const Array* known = call.known(0))
    return call.nested.inline_nested(known->at(0) != 0 ? *then.graph : *otherwise.graph, {});
  const std::vector<Value> one = call.nested.inline_nested(*then.graph, {}),
                           other = call.nested.inline_nested(*otherwise.graph, {});
  if (one.size() != other.size()) call.refuse("its branches give different numbers of values");
  const Value condition = call.b.reshape(call[0], {});
  std::vector<Value> results;
  for (size_t i = 0; i < one.size(); ++i) {
    if (call.graph.type(one[i]) != call.graph.type(other[i]))
      call.refuse(
          "its branches give values of different types, and which one is not known before the model runs");
    results.push_back(call.b.select(condition, one[i], other[i]));
  }
  return results;
}

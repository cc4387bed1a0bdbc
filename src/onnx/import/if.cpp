#include "onnx/import/call.h"

using namespace millrace;

namespace {

/// One branch's result or the other's.
onnx::Item picked(onnx::ImportCall& call, Value condition, const onnx::Item& one, const onnx::Item& other) {
  using Form = onnx::Item::Form;
  if (one.form == Form::tensor && other.form == Form::tensor && one.bounded_axis < 0 &&
      other.bounded_axis < 0 && call.graph.type(one.value) == call.graph.type(other.value))
    return call.b.select(condition, one.value, other.value);
  if (one.form == Form::sequence && other.form == Form::sequence &&
      one.items->size() == other.items->size()) {
    std::vector<onnx::Item> items;
    for (size_t i = 0; i < one.items->size(); ++i)
      items.push_back(picked(call, condition, (*one.items)[i], (*other.items)[i]));
    return onnx::Item::of(std::move(items));
  }
  throw onnx::UnknownInputs(
      "its branches give values of different types, and which one is not known before the model runs",
      onnx::inputs_behind(call.graph, condition));
}

}  // namespace

/// Where the condition is known, its branch; else both are computed, and one is taken.
MILLRACE_ONNX_IMPORT(If) {
  const onnx::AttributeProto &then = call.attribute("then_branch"),
                             &otherwise = call.attribute("else_branch");
  if (!then.graph || !otherwise.graph) call.refuse("it lacks a branch");
  if (const Array* known = call.known(0); known && known->count() == 1)
    return call.nested.inline_nested(known->at(0) != 0 ? *then.graph : *otherwise.graph, {});
  const onnx::Items one = call.nested.inline_nested(*then.graph, {}),
                    other = call.nested.inline_nested(*otherwise.graph, {});
  if (one.size() != other.size()) call.refuse("its branches give different numbers of values");
  const Value condition = call.b.reshape(call[0], {});
  onnx::Items results;
  for (size_t i = 0; i < one.size(); ++i) results.push_back(picked(call, condition, one[i], other[i]));
  return results;
}

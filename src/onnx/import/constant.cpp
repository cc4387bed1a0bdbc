#include "onnx/import/call.h"

using namespace millrace;
using onnx::Item;

MILLRACE_ONNX_IMPORT(Constant) {
  for (const onnx::AttributeProto& each : call.node.attributes) {
    if (each.name == "value" && each.tensor && each.tensor->is_text())
      return {Item::of(texts_of(*each.tensor))};
    if (each.name == "value" && each.tensor) return {call.constant(array_of(*each.tensor, call.folder))};
    if (each.name == "sparse_value" && each.sparse)
      return {call.constant(array_of(*each.sparse, call.folder))};
    if (each.name == "value_float") return {call.scalar(f32, static_cast<double>(each.number))};
    if (each.name == "value_int") return {call.whole(each.integer)};
    if (each.name == "value_ints") return {call.ints_constant(each.integers)};
    if (each.name == "value_floats") {
      const std::vector<double> list(each.numbers.begin(), each.numbers.end());
      return {call.constant(Array::of(f32, {static_cast<int64_t>(list.size())}, list))};
    }
    if (each.name == "value_string") return {Item::of(onnx::Texts{{}, {each.text}})};
    if (each.name == "value_strings")
      return {Item::of(onnx::Texts{{static_cast<int64_t>(each.texts.size())}, each.texts})};
  }
  call.refuse("it has no value");
}

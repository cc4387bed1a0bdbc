#include <algorithm>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;
using onnx::Item;
using onnx::Items;

// Sequences are taken apart while the model is imported: how long they are, and where something lies in them,
// must be known then. Their tensors need not be.

namespace {

/// A place in a sequence of `size`, counted from the end where negative.
size_t place(onnx::ImportCall& call, int k, size_t size, size_t most) {
  const Ints given = call.known_ints(k);
  if (given.size() != 1) call.refuse("its place is no number");
  const int64_t at = given[0] < 0 ? given[0] + static_cast<int64_t>(size) : given[0];
  if (at < 0 || at > static_cast<int64_t>(most))
    call.refuse("the place " + std::to_string(given[0]) + " lies outside of its sequence of " +
                std::to_string(size));
  return static_cast<size_t>(at);
}

}  // namespace

MILLRACE_ONNX_IMPORT(SequenceEmpty) { return {Item::of(std::vector<Item>{})}; }

MILLRACE_ONNX_IMPORT(SequenceConstruct) {
  std::vector<Item> items;
  for (int k = 0; k < call.count(); ++k) items.push_back(call.item(k));
  return {Item::of(std::move(items))};
}

MILLRACE_ONNX_IMPORT(SequenceLength) { return {call.whole(std::ssize(call.sequence(0)))}; }

MILLRACE_ONNX_IMPORT(SequenceAt) {
  const std::vector<Item>& items = call.sequence(0);
  if (items.empty()) call.refuse("its sequence is empty");
  return {items[place(call, 1, items.size(), items.size() - 1)]};
}

MILLRACE_ONNX_IMPORT(SequenceInsert) {
  std::vector<Item> items = call.sequence(0);
  const size_t at = call.given(2) ? place(call, 2, items.size(), items.size()) : items.size();
  items.insert(items.begin() + static_cast<int64_t>(at), call.item(1));
  return {Item::of(std::move(items))};
}

MILLRACE_ONNX_IMPORT(SequenceErase) {
  std::vector<Item> items = call.sequence(0);
  if (items.empty()) call.refuse("its sequence is empty");
  const size_t at = call.given(1) ? place(call, 1, items.size(), items.size() - 1) : items.size() - 1;
  items.erase(items.begin() + static_cast<int64_t>(at));
  return {Item::of(std::move(items))};
}

MILLRACE_ONNX_IMPORT(ConcatFromSequence) {
  std::vector<Value> parts;
  const bool fresh = call.integer("new_axis", 0) != 0;
  int64_t axis = 0;
  for (const Item& each : call.sequence(0)) {
    if (each.form != Item::Form::tensor || each.bounded_axis >= 0)
      call.refuse("its sequence holds what are no tensors of a known size");
    axis = call.axis(call.integer("axis"), call.b.shape(each.value).rank() + (fresh ? 1 : 0));
    parts.push_back(each.value);
  }
  if (parts.empty()) call.refuse("its sequence is empty");
  return {fresh ? call.stacked(parts, axis) : call.concat(parts, axis)};
}

MILLRACE_ONNX_IMPORT(SplitToSequence) {
  const int64_t axis = call.axis(call.integer("axis", 0), call.rank(0)),
                size = call.shape(0)[static_cast<size_t>(axis)].size();
  const bool single = !call.given(1);
  Ints sizes = single ? Ints{1} : call.known_ints(1);
  if (single || call.rank(1) == 0) {
    const int64_t each = sizes.at(0);
    if (each < 1 || size / each > 65536) call.refuse("its parts are of " + std::to_string(each));
    sizes.clear();
    for (int64_t at = 0; at < size; at += each) sizes.push_back(std::min(each, size - at));
  }
  std::vector<Item> items;
  int64_t at = 0;
  for (const int64_t each : sizes) {
    if (each < 0 || each > size - at) call.refuse("its parts are larger than what is split");
    Value part = call.part(call[0], axis, at, at + each);
    if (single && call.integer("keepdims", 1) == 0) {
      Shape shape = call.b.shape(part);
      shape.erase(shape.begin() + axis);
      part = call.b.reshape(part, shape);
    }
    items.emplace_back(part);
    at += each;
  }
  if (at != size) call.refuse("its parts are smaller than what is split");
  return {Item::of(std::move(items))};
}

/// Its body once for each element.
MILLRACE_ONNX_IMPORT(SequenceMap) {
  const onnx::AttributeProto& body = call.attribute("body");
  if (!body.graph) call.refuse("it lacks its body");
  const size_t length = call.sequence(0).size();
  std::vector<std::vector<Item>> results(body.graph->outputs.size());
  for (size_t i = 0; i < length; ++i) {
    Items arguments;
    for (int k = 0; k < call.count(); ++k) {
      const Item& each = call.item(k);
      if (each.form == Item::Form::sequence && each.items->size() != length)
        call.refuse("its sequences have different lengths");
      arguments.push_back(each.form == Item::Form::sequence ? (*each.items)[i] : each);
    }
    const Items given = call.nested.inline_nested(*body.graph, arguments);
    for (size_t r = 0; r < results.size(); ++r) results[r].push_back(given[r]);
  }
  Items sequences;
  for (std::vector<Item>& each : results) sequences.push_back(Item::of(std::move(each)));
  return sequences;
}

// What a name of an ONNX graph stands for while it is imported. Tensors are values of the graph that is made;
// texts, sequences and optionals are known or taken apart now, and never reach it.
#pragma once

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>

#include "onnx/model.h"

namespace millrace::onnx {

struct Item {
  enum class Form { left_out, tensor, texts, sequence, empty };
  Form form = Form::left_out;  // empty: an optional that holds nothing
  Value value;
  std::shared_ptr<const Texts> texts;
  std::shared_ptr<const std::vector<Item>> items;  // of a sequence
  /// Of a tensor whose size along an axis depends on data: `value` has the most that it can be, and `size`,
  /// i64[], says how much of it counts.
  int bounded_axis = -1;
  Value size;
  /// Of a tensor of whole numbers that is computed from such sizes, or counts what holds: what it has where
  /// all of them are 0, and where all are as large as they can be. Each element lies in between.
  struct Between {
    Array least, most;
  };
  std::shared_ptr<const Between> between;
  bool of_sizes = false;  // a known tensor that was computed from the sizes of others
  bool sized = false;     // a known tensor that has as many elements as such sizes say (places, a mask)

  Item() = default;
  Item(Value tensor)
      : form(tensor.valid() ? Form::tensor : Form::left_out), value(tensor) {}  // NOLINT: tensors are items
  static Item bounded(Value tensor, int axis, Value size) {
    Item item(tensor);
    item.bounded_axis = axis;
    item.size = size;
    return item;
  }
  static Item of(Texts texts) {
    Item item;
    item.form = Form::texts;
    item.texts = std::make_shared<Texts>(std::move(texts));
    return item;
  }
  static Item of(std::vector<Item> items) {
    Item item;
    item.form = Form::sequence;
    item.items = std::make_shared<std::vector<Item>>(std::move(items));
    return item;
  }
  static Item empty() {
    Item item;
    item.form = Form::empty;
    return item;
  }
  bool is_something() const { return form != Form::left_out && form != Form::empty; }
};

/// The results of a node.
class Items : public std::vector<Item> {
 public:
  using std::vector<Item>::vector;
  Items(const std::vector<Value>& values) : std::vector<Item>(values.begin(), values.end()) {}  // NOLINT
  Items(std::initializer_list<Item> items) : std::vector<Item>(items) {}
};

}  // namespace millrace::onnx

// What goes into and comes out of an ONNX model at its edge: tensors, tensors of texts, sequences, optionals.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <millrace/array.h>

#include "onnx/model.h"

namespace millrace::onnx {

/// A tensor of texts, row-major.
struct Texts {
  std::vector<int64_t> shape;
  std::vector<std::string> values;

  /// The number of elements that the shape says.
  int64_t count() const;
};

struct HostValue {
  enum class Form { nothing, tensor, texts, sequence };
  Form form = Form::nothing;  // nothing: an optional that holds nothing
  Array array;
  Texts texts;
  std::vector<HostValue> items;  // of a sequence

  static HostValue of(Array array) {
    return {.form = Form::tensor, .array = std::move(array), .texts = {}, .items = {}};
  }
  static HostValue of(Texts texts) {
    return {.form = Form::texts, .array = {}, .texts = std::move(texts), .items = {}};
  }
  static HostValue of(std::vector<HostValue> items) {
    return {.form = Form::sequence, .array = {}, .texts = {}, .items = std::move(items)};
  }
};

/// The texts of a tensor. InputError when there are more or fewer than its shape says.
Texts texts_of(const TensorProto& tensor);

}  // namespace millrace::onnx

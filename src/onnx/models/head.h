// Where a model's features end and its head begins.
#pragma once

#include <string>

#include "onnx/model.h"

namespace millrace::onnx {

struct End {
  std::string value;  // of the model's graph
  std::string note;   // for who trains it: what behind it is left out; may be empty
};

/// The model's first output, in front of a softmax or sigmoid at its end: losses have their own.
End logits_of(const Model& model);

/// What the last product behind `logits` is given. InputError where the way there goes through other than
/// additions of constants, reshapes and means.
End features_of(const Model& model, const std::string& logits);

/// What the first product, convolution or batch norm of a model is given: the value that the model's own
/// input has become when it is prepared. Empty where there is none.
std::string prepared_input(const Model& model);

/// Convolutions with biases, and no batch norms at all?
bool batch_norms_folded(const Model& model);

}  // namespace millrace::onnx

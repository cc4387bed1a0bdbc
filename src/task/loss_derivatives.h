// First and second derivatives of an output's loss by its logits, for what is fitted by them.
#pragma once

#include <memory>
#include <utility>

#include <millrace/array.h>
#include <millrace/program.h>

#include "task/output.h"

namespace millrace::task {

/// Of the loss of each row, all of one set of targets.
class LossDerivatives {
 public:
  /// InputError where the loss has none, or there are very many logits.
  LossDerivatives(const Output& output, Array targets);
  /// Both f32 [rows, width]. Where the second is not above 0 (a loss of straight lines, as quantiles have),
  /// it is taken for 1: steps go by the first alone.
  std::pair<Array, Array> operator()(const Array& logits);

 private:
  Array targets_;
  std::unique_ptr<Program> program_;
};

/// Is the loss, but for a factor, the usual one of such logits: cross-entropy of softmax (classes), of
/// sigmoids (labels), squares of errors (numbers)? Found by its derivatives on some rows of these targets, so
/// that weights of classes, smoothing and a program's own losses count too.
bool is_usual_loss(const Output& output, const Array& targets);

}  // namespace millrace::task

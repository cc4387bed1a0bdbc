// A calibration at work, and as the run folder keeps it.
#pragma once

#include <string>

#include <millrace/tensor.h>

#include "task/output.h"

namespace millrace::task {

/// Logits, f32, of which softmax (or sigmoid) makes the calibrated probabilities; as they are where the
/// output has no calibration of them.
Tensor calibrated(const Output& output, const Tensor& logits);
/// What the output's thresholds decide of calibrated logits, i64: of two classes [batch], which one; of
/// labels [batch, labels], 1 for those that hold. Undefined where it has none.
Tensor decisions(const Output& output, const Tensor& logits);

/// JSON, and back. InputError when it is damaged, or of another number of classes than the output's.
std::string calibration_json(const eval::Calibration& calibration);
eval::Calibration calibration_of(const std::string& json, const Output& output);
/// "temperature 1.832", "isotonic, 17 levels; threshold 0.31"
std::string calibration_text(const eval::Calibration& calibration);

}  // namespace millrace::task

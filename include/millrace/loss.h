// Losses: what a training makes small.
#pragma once

#include <string>
#include <vector>

#include <millrace/settings.h>
#include <millrace/tensor.h>

namespace millrace::task {

/// A kind of loss.
struct LossKind {
  std::string name;  // "cross-entropy"
  std::string doc = {};
  std::vector<std::string> outputs = {};  // kinds of output that it applies to
  std::vector<Setting> settings = {};
  /// The loss of each row (and place): `logits` [batch, …, width] against `targets` (labels i64 [batch, …] ≥
  /// 0, numbers or 0/1 f32 [batch, width]) → f32 [batch, …]. With `mean` their mean, a scalar, in the
  /// cheapest way that there is.
  Tensor (*make)(const Tensor& logits, const Tensor& targets, const Settings& settings, bool mean) = nullptr;
  /// The same with a weight for each class, or of each label that holds: `weights` f32 [width]. Null where
  /// the loss knows none.
  Tensor (*weighted)(const Tensor& logits, const Tensor& targets, const Tensor& weights,
                     const Settings& settings, bool mean) = nullptr;
};

/// Adds a loss to those of the library: recipes name it in output.loss. InputError when its name is taken, or
/// `doc`, `make` or `outputs` are missing.
const LossKind& register_loss(const LossKind& kind);

}  // namespace millrace::task

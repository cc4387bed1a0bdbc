// Losses: each is one file in losses/.
#pragma once

#include <vector>

#include <millrace/loss.h>

#include "base/registry.h"

namespace millrace::task {

#define MILLRACE_LOSS(name)                            \
  extern const ::millrace::task::LossKind name##_loss; \
  const ::millrace::task::LossKind name##_loss

Registry<LossKind>& loss_kinds();

/// An output's: chosen_loss() of recipe_sections.h.
struct ChosenLoss {
  const LossKind* kind = nullptr;
  Settings settings;
  std::vector<float> weights = {};  // of the classes; none: all alike
  Tensor operator()(const Tensor& logits, const Tensor& targets, bool mean) const;
};

}  // namespace millrace::task

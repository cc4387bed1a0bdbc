// Losses: each is one file in losses/.
#pragma once

#include <millrace/loss.h>

#include "base/registry.h"

namespace millrace::task {

#define MILLRACE_LOSS(name)                            \
  extern const ::millrace::task::LossKind name##_loss; \
  const ::millrace::task::LossKind name##_loss

Registry<LossKind>& loss_kinds();

}  // namespace millrace::task

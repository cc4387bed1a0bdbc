// Who runs what a plan says.
#pragma once

#include <memory>
#include <vector>

#include "plan/plan.h"

namespace millrace {

/// The kernels of a plan's launches, for whoever runs it.
class PlanKernels {
 public:
  PlanKernels() = default;
  /// The plan's own, which only one at a time may run.
  explicit PlanKernels(const Plan& plan);
  /// For one more who runs it: the same where they may be shared (Kernel::another()).
  PlanKernels(const PlanKernels& other);
  PlanKernels& operator=(PlanKernels&&) = default;
  Kernel& operator[](size_t launch) const { return *kernels_[launch]; }

 private:
  std::vector<Kernel*> kernels_;  // of each launch
  std::vector<std::unique_ptr<Kernel>> own_;
};

}  // namespace millrace

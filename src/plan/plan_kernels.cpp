#include "plan/plan_kernels.h"

#include <utility>

namespace millrace {

PlanKernels::PlanKernels(const Plan& plan) {
  for (const PlannedLaunch& launch : plan.launches) kernels_.push_back(launch.kernel.get());
}

PlanKernels::PlanKernels(const PlanKernels& other) : kernels_(other.kernels_) {
  for (Kernel*& kernel : kernels_)
    if (std::unique_ptr<Kernel> another = kernel->another()) {
      kernel = another.get();
      own_.push_back(std::move(another));
    }
}

}  // namespace millrace

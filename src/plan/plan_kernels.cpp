#include "plan/plan_kernels.h"

#include <utility>

namespace millrace {

PlanKernels PlanKernels::own_of(const Plan& plan) {
  PlanKernels kernels;
  for (const PlannedLaunch& launch : plan.launches) kernels.kernels_.push_back(launch.kernel.get());
  return kernels;
}

PlanKernels PlanKernels::another_of(const Plan& plan) {
  PlanKernels kernels = own_of(plan);
  for (Kernel*& kernel : kernels.kernels_)
    if (std::unique_ptr<Kernel> another = kernel->another()) {
      kernel = another.get();
      kernels.own_.push_back(std::move(another));
    }
  return kernels;
}

}  // namespace millrace

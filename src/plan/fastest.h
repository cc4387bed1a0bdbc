// Choice by timing.
#pragma once

#include <memory>
#include <vector>

#include "target/provider.h"

namespace millrace {

/// Numbers to time with, in which nothing is zero, infinite or subnormal; the same every time.
Array timing_numbers(const Type& type);

/// Indices of kernels: the one that runs fastest on small random numbers, or the first that is as fast within
/// 2 %; behind it those within 10 %, the faster ones first. All compute the same node, with the request's
/// layouts.
std::vector<size_t> fastest(const std::vector<std::unique_ptr<Kernel>>& kernels, const KernelRequest& request,
                            DeviceContext device);

/// Index of the kernel with the least scratch memory, not counting what each thread needs.
size_t most_frugal(const std::vector<std::unique_ptr<Kernel>>& kernels);

}  // namespace millrace

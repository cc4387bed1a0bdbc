// What the kernels of the CPU back end are made from.
#pragma once

#include <string_view>

namespace millrace::cpu {

/// A digest of the source text of all below src/backend/cpu: what kernels packed is read again by kernels of
/// the same text alone, so nobody has to remember a number when a packed form changes.
std::string_view kernel_sources();

}  // namespace millrace::cpu

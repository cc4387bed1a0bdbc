// The CPU back end: its providers in order of preference; the reference comes behind them.
#pragma once

#include <string_view>

#include "base/registry.h"
#include "target/provider.h"

namespace millrace::cpu {

Registry<ProviderKind>& providers();

/// A digest of the source text of all below src/backend/cpu: what kernels packed is read again by kernels of
/// the same text alone, so nobody has to remember a number when a packed form changes.
std::string_view kernel_sources();

}  // namespace millrace::cpu

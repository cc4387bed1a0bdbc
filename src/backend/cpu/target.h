// The CPU back end: its providers in order of preference.
#pragma once

#include "base/registry.h"
#include "target/provider.h"

namespace millrace {
namespace cpu {

Registry<ProviderKind>& providers();

/// With the providers that there are now, and the reference behind them.
Target make_target();

}  // namespace cpu

/// Adds a provider to those of the library; programs that were compiled before do without. InputError.
const ProviderKind& register_provider(const ProviderKind& kind);

}  // namespace millrace

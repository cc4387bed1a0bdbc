// The CPU back end: its providers in order of preference.
#pragma once

#include "base/registry.h"
#include "target/provider.h"

namespace millrace::cpu {

Registry<ProviderKind>& providers();

/// With the providers that there are now, and the reference behind them.
Target make_target();

}  // namespace millrace::cpu

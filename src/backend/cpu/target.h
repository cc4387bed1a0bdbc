// The CPU back end: its providers in order of preference; the reference comes behind them.
#pragma once

#include "base/registry.h"
#include "target/provider.h"

namespace millrace::cpu {

Registry<ProviderKind>& providers();

}  // namespace millrace::cpu

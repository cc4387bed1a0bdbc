// The CPU back end: its providers in order of preference.
#pragma once

#include "target/provider.h"

namespace millrace::cpu {

Target make_target();

}  // namespace millrace::cpu

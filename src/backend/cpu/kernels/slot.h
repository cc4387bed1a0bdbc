// Scratch memory for chunks of CPU kernels.
#pragma once

#include "target/slot.h"

namespace millrace::cpu {

using millrace::Slot;
using millrace::Slots;

}  // namespace millrace::cpu

#include "backend/cpu/kernel_sources.h"

namespace millrace::cpu {

std::string_view kernel_sources() {
  return
#include "generated/kernel_sources.inc"
      ;
}

}  // namespace millrace::cpu

#include "backend/cpu/codegen/jit.h"

namespace millrace::codegen {

std::string_view code_sources() {
  return
#include "generated/code_sources.inc"
      ;
}

}  // namespace millrace::codegen

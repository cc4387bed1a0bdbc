#include "backend/cpu/codegen/code_numbers.h"

namespace millrace::codegen {

std::string_view code_numbers() {
  return
#include "generated/code_numbers.inc"
      ;
}

}  // namespace millrace::codegen

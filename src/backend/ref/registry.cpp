#include "backend/ref/registry.h"

#include <map>

#define KIND(NAME) MILLRACE_REF(NAME);
#include "generated/ref_functions.inc"
#undef KIND

namespace millrace::ref {

Function find_function(std::string_view op) {
  static const std::map<std::string_view, Function> functions = {
#define KIND(NAME) {#NAME, &ref_##NAME},
#include "generated/ref_functions.inc"
#undef KIND
  };
  const auto it = functions.find(op);
  return it == functions.end() ? nullptr : it->second;
}

}  // namespace millrace::ref

#include "backend/ref/registry.h"

#include <map>
#include <string>

#include <millrace/operator.h>

#include "base/format.h"
#include "ops/registry.h"

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

void check_coverage() {
  std::string missing;
  for (const Operator* op : ops::library_operators())
    if (!op->is_given() && op->op_class != OpClass::composite && op->op_class != OpClass::group &&
        !op->scalar && !op->reduction && !find_function(op->name))
      missing += (missing.empty() ? "" : ", ") + std::string(op->name);
  if (!missing.empty()) fail<InternalError>("the reference back end lacks: {}", missing);
}

}  // namespace millrace::ref

#include "ops/check.h"

#include <string>
#include <vector>

#include "base/format.h"
#include "ops/missing_parts.h"
#include "ops/registry.h"

namespace millrace {

void check_operators() {
  static const std::vector<std::string> missing = missing_parts(ops::library_operators());
  if (!missing.empty()) fail<InternalError>("operators are incomplete: {}", fmt::join(missing, "; "));
}

}  // namespace millrace

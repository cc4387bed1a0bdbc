// The lists of verbs, as CMake found them.
#include "cli/verbs.h"

#include "base/registry.h"

namespace millrace::cli {

#include "generated/data_verbs.inc"
#include "generated/verbs.inc"

const std::vector<const Verb*>& verbs() {
  static const Registry<Verb> all("verb", {MILLRACE_FOUND_VERBS});
  return all.all();
}

const std::vector<const Verb*>& data_verbs() {
  static const Registry<Verb> all("verb of data", {MILLRACE_FOUND_DATA_VERBS});
  return all.all();
}

}  // namespace millrace::cli

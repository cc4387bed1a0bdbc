// The verbs. Each is a file here that ends with MILLRACE_VERB(name){…}, those of `millrace data` with
// MILLRACE_DATA_VERB(name){…}: CMake finds them there (cmake/kinds.cmake).
#pragma once

#include "cli/command.h"

namespace millrace::cli {

#define MILLRACE_VERB(NAME)      \
  extern const Verb NAME##_verb; \
  const Verb NAME##_verb

#define MILLRACE_DATA_VERB(NAME)        \
  extern const Verb data_##NAME##_verb; \
  const Verb data_##NAME##_verb

/// Those of `millrace data`, in the order of the help text.
std::vector<Verb> data_verbs();

}  // namespace millrace::cli

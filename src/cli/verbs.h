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

/// Of verbs that use a trained model.
inline constexpr const char* checkpoint_doc =
    "which one of the run: best (train.keep_best), or the number of a step; by default the last";

/// Those of `millrace data`, in the order of the help text.
const std::vector<const Verb*>& data_verbs();

}  // namespace millrace::cli

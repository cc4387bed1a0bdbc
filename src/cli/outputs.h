// Where verbs write to.
#pragma once

#include <string>
#include <string_view>

#include "base/format.h"

namespace millrace::cli {

/// Of an output that standard output cannot be, for it has the report, or it is a folder: InputError for "-".
inline void require_named(const std::string& out, std::string_view what) {
  if (out == "-")
    fail<InputError>("{} -: cannot be standard output; give it a name (./- for one that is called so)", what);
}

}  // namespace millrace::cli

// What the verbs of `millrace data` share.
#pragma once

#include <cstdio>
#include <fmt/core.h>

#include "data/dataset.h"

namespace millrace::cli {

/// How a data set was opened, where the user should know: on standard error, so that --json stays whole.
inline void print_notes(const data::Dataset& dataset) {
  for (const std::string& note : dataset.notes()) fmt::print(stderr, "note: {}\n", note);
}

}  // namespace millrace::cli

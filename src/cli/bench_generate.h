// How fast a built-in network goes on with rows of tokens.
#pragma once

#include "cli/zoo.h"

namespace millrace::cli {

/// Rows begin with `prompt` tokens and grow to the longest, again and again for `seconds`; prints what that
/// takes and at last the tokens a second of its steps. InputError for networks that cannot.
int bench_generate(const ZooOptions& options, int64_t prompt, double seconds, bool profile);

}  // namespace millrace::cli

// Sizes of a model's named dimensions, as options give them.
#pragma once

#include <string>
#include <vector>

#include <millrace/session.h>

namespace millrace::cli {

inline constexpr const char* sizes_doc =
    "sizes of the model's named dimensions: batch=8,length=128 (else 1 for the first one of an input, 64)";

/// InputError for what is no "name=size, …", or names that the inputs do not have.
Bindings parse_sizes(const std::string& text, const std::vector<SessionValue>& inputs);
/// "batch=1, length=64"
std::string sizes_text(const Bindings& sizes);

}  // namespace millrace::cli

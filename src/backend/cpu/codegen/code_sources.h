// Which code generator this is.
#pragma once

#include <string_view>

namespace millrace::codegen {

/// A digest of the sources that make code, and of the headers whose enumerations stand as numbers in the text
/// that code is known by: of the same text another generator would have made something else, so nobody has to
/// remember a number when this one changes.
std::string_view code_sources();

}  // namespace millrace::codegen

// What the numbers in the text of a nest mean.
#pragma once

#include <string_view>

namespace millrace::codegen {

/// A digest of the headers whose enumerations stand as numbers in the text that code is known by: with
/// another list the same text would mean something else.
std::string_view code_numbers();

}  // namespace millrace::codegen

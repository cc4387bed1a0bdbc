// Values of columns as texts.
#pragma once

#include <string>
#include <string_view>

#include <millrace/dataset.h>

namespace millrace::data {

/// A number as a category is called: "7", "0.5".
std::string category_text(const ColumnValues& values, size_t i);
/// Without these characters at both ends.
std::string_view trimmed_text(std::string_view text, std::string_view characters);

}  // namespace millrace::data

// Values of columns as texts.
#pragma once

#include <string>

#include <millrace/dataset.h>

namespace millrace::data {

/// A number as a category is called: "7", "0.5".
std::string category_text(const ColumnValues& values, size_t i);

}  // namespace millrace::data

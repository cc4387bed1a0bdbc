// Booleans as texts: "true" in JSON and Parquet, "True" where Python wrote a CSV, "TRUE" where R did.
#pragma once

#include <cstdint>
#include <string_view>

#include <millrace/dataset.h>

#include "base/text_hash.h"

namespace millrace::data {

/// 1 for true, 0 for false, in any letters; -1 for all else.
int boolean_of(std::string_view text);

/// Is the first value of a column that is there one of them?
bool holds_booleans(const Dataset& dataset, size_t column);

/// Where one of them has an id, its other ways of writing get the same, unless they have their own.
void add_booleans(TextMap<int64_t>& ids);

}  // namespace millrace::data

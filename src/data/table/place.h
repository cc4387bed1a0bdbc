// Where a sample stands, for people who look for it.
#pragma once

#include <cstdint>
#include <string>

#include <millrace/dataset.h>

namespace millrace::data {

/// "people.csv, line 12" of a row of a text file, whatever was chosen of the file; its name() of others. What
/// was counted is kept, so that rows that are named in their order cost one reading of the file.
std::string place_of(const Dataset& dataset, int64_t index);

}  // namespace millrace::data

// Which samples are kept to test on, where a recipe gives a share of them.
#pragma once

#include <cstdint>

namespace millrace::data {

/// Is the sample of that number in the data set one of those to test on? By a hash of its own, so that the
/// seed of a training changes nothing.
bool kept_for_test(int64_t index, double share);

}  // namespace millrace::data

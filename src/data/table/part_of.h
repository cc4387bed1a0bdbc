// A small part of a data set that is like the whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// How much of a data set is taken: a share, "2%", or a number of samples, "500".
struct PartSize {
  double share = 0;   // 0: `count` says it
  int64_t count = 0;  // 0: `share` says it

  /// InputError, worded to follow the name of an option or key.
  static PartSize parse(std::string_view text);
  /// Of so many: at least 1, and no more than there are.
  int64_t of(int64_t all) const;
};

/// About so many samples, in the order of the data set, by a hash of key and seed: the same for the same
/// seed, and those of a smaller part are among those of a larger one. `strata`: what kind each sample is of;
/// of each kind its share is taken, within one sample, and at least one where `count` is enough for all
/// kinds. `group`, not empty: whole groups of that column's values instead.
std::vector<int64_t> part_of(const Dataset& set, int64_t count, uint64_t seed,
                             std::span<const int64_t> strata, const std::string& group);

}  // namespace millrace::data

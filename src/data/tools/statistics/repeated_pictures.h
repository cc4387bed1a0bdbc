// Pictures of a test set that training has, too.
#pragma once

#include <cstdint>
#include <string>

#include <millrace/dataset.h>

namespace millrace::data {

struct RepeatedPictures {
  /// Test pictures that have the bytes of one of training, or its looks.
  int64_t repeated = 0;
  std::string test, train;  // the names of such a pair
  /// How many of each set were looked at.
  struct Looked {
    int64_t tests = 0, trained = 0;
    bool operator==(const Looked&) const = default;
  };
  Looked bytes, looks;
};

/// Looks for no longer than about `seconds`; of large sets at some pictures from all over them. `column`: of
/// the pictures; "": whichever a sample has.
RepeatedPictures repeated_pictures(const Dataset& train, const Dataset& test, const std::string& column,
                                   double seconds);

}  // namespace millrace::data

// What tells one data set from another: a digest of what is in it.
#pragma once

#include <cstdint>
#include <string>

#include <millrace/dataset.h>

namespace millrace::data {

struct Fingerprint {
  std::string source;   // as it was opened
  int64_t samples = 0;  // there are
  int64_t read = 0;     // of them, whose values are in the digest; 0: only names and places
  std::string digest;   // xxh3_128 in hexadecimal
  bool operator==(const Fingerprint&) const = default;
};

/// Columns, number of samples, and the values of samples that are spread evenly over all of them: all where
/// they are few, else at most 4,096 and about 64 MB of them. Of data on servers no value is read: names,
/// places and sizes stand for them. The same samples in another format, or elsewhere, have the same digest as
/// long as columns and values are the same; of two data sets of different digests one has been changed. A
/// sample that cannot be read counts as such.
Fingerprint fingerprint(const Dataset& samples);

}  // namespace millrace::data

// Samples divided among training, validation and test.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

struct SplitRule {
  struct Part {
    std::string name;
    double share = 0;
  };
  std::vector<Part> parts;
  /// "random", "stratified", "group:COLUMN" or "time:COLUMN".
  std::string by = "random";
  uint64_t seed = 1;

  /// From "train=0.8,val=0.1,test=0.1"; InputError unless the shares are above 0 and their sum is 1 (within
  /// 0.1 %).
  static SplitRule parse(std::string_view parts, std::string by, uint64_t seed);
};

/// The samples of each part, in the order of the data set. InputError when a part has none, a column is
/// missing or not of small values, or a sample lacks its value.
///  - random: by a hash of key (key_of() in labels.h) and seed alone, so that a sample stays in its part
///  whatever is added;
///  - stratified: the same order by hashes cut within each class, so that each part has its share of each
///  class within one
///    sample; what is added moves no more samples than these cuts;
///  - group: all samples of one value (integer, real or text) are in one part; groups are taken in the order
///  of their hashes
///    until a part has its share;
///  - time: the oldest are in the first part, the newest in the last. Numbers by size, texts by their bytes
///  (ISO 8601 dates sort
///    so); samples of one time stay in their order.
std::vector<std::vector<int64_t>> split_samples(const Dataset& set, const SplitRule& rule);

}  // namespace millrace::data

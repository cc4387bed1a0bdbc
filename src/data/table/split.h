// Samples divided among training, validation and test.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// By what samples are divided: "random", "stratified", "group:COLUMN" or "time:COLUMN".
struct SplitBy {
  enum class How { random, stratified, group, time } how = How::random;
  std::string column;

  /// InputError, worded to follow the name of an option or key, with the nearest word.
  static SplitBy parse(std::string_view text);
};

struct SplitRule {
  struct Part {
    std::string name;
    double share = 0;
  };
  std::vector<Part> parts;
  SplitBy by;
  uint64_t seed = 1;
  /// What leaves samples out, for messages.
  const char* where = "--where";

  /// From "train=0.8,val=0.1,test=0.1"; InputError unless the shares are above 0 and their sum is 1 (within
  /// 0.1 %).
  static SplitRule parse(std::string_view parts, std::string_view by, uint64_t seed);
};

/// What samples are divided by: FNV-1a of the seed and the sample's key (labels.h), its bits then mixed.
uint64_t split_hash(std::string_view key, uint64_t seed);

/// Where a recipe gives a share of the samples to test on: is the sample of that number in the data set one
/// of those? By a hash of its own, so that the seed of a training changes nothing.
bool kept_for_test(int64_t index, double share);

/// The samples of each part, in the order of the data set. InputError when a part has none, a column is
/// missing or not of small values, or a sample lacks its value.
///  - random: by a hash of key (key_of() in labels.h) and seed alone, so that a sample stays in its part
///    whatever is added;
///  - stratified: the same order by hashes cut within each class, so that each part has its share of each
///    class within one sample, and of two parts each has one of a class that has two; what is added moves no
///    more samples than these cuts. `classes`: the class of each sample; empty: its class_column() says it;
///  - group: all samples of one value (integer, real or text) are in one part; groups are taken in the order
///    of their hashes until a part has its share, and every part gets one;
///  - time: the oldest are in the first part, the newest in the last. Numbers by size, texts by their bytes
///    (ISO 8601 dates sort so; dates with the year at their end do not and are refused); all samples of one
///    time are in one part.
std::vector<std::vector<int64_t>> split_samples(const Dataset& set, const SplitRule& rule,
                                                std::span<const int64_t> classes = {});

}  // namespace millrace::data

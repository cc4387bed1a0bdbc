// Samples that cannot be read: listed in the run folder, and a limit of how many a training bears.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <millrace/feed.h>

namespace millrace::train {

/// Are so many bad samples more than data.most_bad allows? Below 1 it is a share of the samples tried so far,
/// and a few (kFewBad) are always allowed; from 1 on a number; 0 allows none.
bool too_many_bad(const data::Tried& tried, double most_bad);
constexpr int64_t kFewBad = 8;

/// InputError when there are too many: how many, the first few with their reasons, and what to do. `more`: a
/// sentence that ends the message.
void require_few_bad(const data::Feed& feed, double most_bad, const std::string& more);

/// Lines about samples that are left out and not in `named` yet, which they are put into.
std::vector<std::string> skipped_samples(const data::Feed& feed, std::set<int64_t>& named);

/// bad_samples.jsonl: {"set", "index", "name", "why"} a line, each sample once, also after a resume.
class BadList {
 public:
  /// Reads what an earlier process has written; a line cut off by a kill is dropped.
  explicit BadList(std::filesystem::path path);
  /// Adds those that are not in the list yet; IoError when it cannot be written. `set`: "train" or "test".
  void add(const std::string& set, const std::vector<data::BadSample>& samples);

 private:
  std::filesystem::path path_;
  std::set<std::pair<std::string, int64_t>> listed_;
};

}  // namespace millrace::train

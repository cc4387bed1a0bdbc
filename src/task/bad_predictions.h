// Samples that could not be predicted into a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::task {

class BadPredictions {
 public:
  /// `place`: what a message begins with, where `why` does not already.
  void add(int64_t sample, const std::string& name, const std::string& place, const std::string& why);
  int64_t count() const { return count_; }
  /// The messages of some.
  const std::vector<std::string>& first() const { return first_; }
  /// Lists all in OUT.bad.jsonl, a line of JSON each, and returns its name. Where there are none, returns "",
  /// and `force` removes the list of an earlier call. IoError.
  std::string write(const std::string& out, bool force) const;

 private:
  int64_t count_ = 0;
  std::vector<std::string> first_;
  std::string lines_;
};

}  // namespace millrace::task

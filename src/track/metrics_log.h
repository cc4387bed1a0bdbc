// metrics.jsonl: one JSON object a line, for programs and people.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace millrace::track {

/// The fields of one line, in order. Doubles that are not finite are written as null.
using Fields = std::vector<std::pair<std::string, std::variant<int64_t, double, std::string>>>;

/// The fields as one JSON object, without a line end. Doubles read back to the same bits.
std::string json_line(const Fields& fields);

/// Appends lines; each is flushed at once. The first field of every line is "step".
class MetricsLog {
 public:
  /// Begins an empty file. With `resume_step` ≥ 0, keeps the lines of an existing one up to that step (a line
  /// cut off by a kill goes too). IoError when the file cannot be written.
  explicit MetricsLog(std::filesystem::path path, int64_t resume_step = -1);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  void append(int64_t step, const Fields& fields);

 private:
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

}  // namespace millrace::track

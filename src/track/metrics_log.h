// metrics.jsonl: one JSON object a line, for programs and people.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "track/record.h"

namespace millrace::track {

/// The fields of one line, in order. Doubles that are not finite are written as null.
using Fields = std::vector<std::pair<std::string, std::variant<int64_t, double, std::string>>>;

/// The fields as one JSON object, without a line end. Doubles read back to the same bits.
std::string json_line(const Fields& fields);

/// The whole lines of such a text up to a step; those without a step, too. Unless that step is `whole`,
/// without what was logged of the epoch that ends with it (a line with "seconds").
std::string lines_until(const std::string& text, int64_t step, bool whole = true);

/// The numbers that such lines have under a key, in their order; a last line without an end is left out.
std::vector<double> numbers_of(std::string_view text, const std::string& key);

/// Appends lines, whose first field is "step".
class MetricsLog final : public Sink {
 public:
  /// Begins an empty file. With `resume_step` ≥ 0, keeps the lines of an existing one up to that step (a line
  /// cut off by a kill goes too), as lines_until() has them. IoError when the file cannot be written.
  explicit MetricsLog(std::filesystem::path path, int64_t resume_step = -1, bool whole = true);
  ~MetricsLog() override;
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  void write(const Record& record) override;
  void flush() override;

 private:
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
  std::shared_ptr<const Names> names_;  // that `keys_` are of
  std::vector<std::string> keys_;       // ", \"loss\": "
  std::string line_;
};

}  // namespace millrace::track

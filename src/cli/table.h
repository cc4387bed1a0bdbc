// Columns of text, aligned.
#pragma once

#include <string>
#include <vector>

namespace millrace::cli {

class Table {
 public:
  /// A title that begins with '<' makes its column left-aligned; else it is right-aligned, and may begin with
  /// '>', as names of others' must, which begin with anything.
  explicit Table(std::vector<std::string> titles);
  void row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// Lines, each indented by two spaces; the last column is not padded.
  std::string str() const;

 private:
  std::vector<std::string> titles_;
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;
};

/// "12.34 ms", "8.1 µs", "2.50 s"
std::string time_text(double seconds);
/// "1.2 GB", "34.0 MB", "5.6 kB"
std::string bytes_text(double bytes);
/// "1.20 GFLOP", "34 MFLOP"
std::string flops_text(double flops);
/// A number with about three digits: "1,234", "12.3", "0.12".
std::string number_text(double value);
/// "87 %"
std::string percent_text(double share);

}  // namespace millrace::cli

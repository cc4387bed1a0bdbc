// Records that are on the disk as they come, so that long work goes on where it was stopped, however that
// came about.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace millrace::data {

/// A file of records behind a text that says what they belong to. What a killed process left half written at
/// its end is cut off.
class Journal {
 public:
  /// Opens the file where it is there, and is of this identity; else begins it anew. `each` gets the records
  /// that are there, in order. `replaced`: told where there was one of another identity, or a damaged one.
  /// IoError.
  Journal(std::filesystem::path path, const std::string& identity,
          const std::function<void(std::string_view record)>& each, bool& replaced);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Appends a record; it is the system's when this returns, so that a killed process leaves it whole, and is
  /// flushed to the disk about once a second: a power cut takes what came since. IoError when the disk is
  /// full.
  void add(std::string_view record);
  /// The work is done: removes the file.
  void remove();

 private:
  void write(std::string_view bytes);
  /// Opens it behind its last whole record; false when there is none of this identity.
  bool read(const std::string& identity, const std::function<void(std::string_view)>& each, bool& replaced);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace millrace::data

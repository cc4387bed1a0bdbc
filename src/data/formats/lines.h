// Files whose samples are lines.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// Where the lines of files begin; 8 bytes a line. A line ends with "\n", or the file.
class Lines {
 public:
  /// Finds them, by all CPUs. `wanted`: is it one of those to be counted?
  Lines(Files files, bool (*wanted)(std::string_view));

  int64_t count() const { return count_; }
  std::span<const std::shared_ptr<const RandomAccessFile>> files() const { return files_; }
  SampleExtent extent(int64_t line) const;
  /// "rank.train, byte 120"
  std::string name(int64_t line) const;
  /// A line without its end ("\n" or "\r\n"), and what keeps it alive.
  Bytes read(int64_t line) const;

 private:
  struct Chunk {
    size_t file = 0;
    uint64_t begin = 0, end = 0;
    int64_t first = 0;
    std::vector<uint32_t> starts, ends;  // from `begin`
  };
  const Chunk& chunk_of(int64_t line) const;

  Files files_;
  std::vector<Chunk> chunks_;
  int64_t count_ = 0;
};

/// The part of a data set of lines that is the same for all of them.
class LineDataset : public Dataset {
 public:
  int64_t count() const override { return lines_.count(); }
  std::span<const std::shared_ptr<const RandomAccessFile>> files() const override { return lines_.files(); }
  std::optional<SampleExtent> extent(int64_t index) const override { return lines_.extent(index); }
  std::string name(int64_t index) const override { return lines_.name(index); }

 protected:
  /// InputError when there are no lines.
  LineDataset(const std::string& path, Files files, bool (*wanted)(std::string_view));
  Lines lines_;
};

inline bool every_line(std::string_view) { return true; }
inline bool line_with_text(std::string_view line) {
  return line.find_first_not_of(" \t\r") != std::string_view::npos;
}

}  // namespace millrace::data

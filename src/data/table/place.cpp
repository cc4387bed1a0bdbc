#include "data/table/place.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <tuple>

#include "base/format.h"
#include "data/table/view.h"

namespace millrace::data {
namespace {

/// Text of lines: no bytes that only programs write.
bool has_lines(const RandomAccessFile& file) {
  constexpr uint64_t looked_at = 4096;
  const Bytes head = file.read(0, std::min(file.size(), looked_at));
  return std::none_of(head.view().begin(), head.view().end(), [](uint8_t byte) {
    return byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
  });
}

/// The line that is counted last; the next that is asked for is mostly behind it.
struct Counted {
  std::weak_ptr<const RandomAccessFile> file;
  uint64_t at = 0, line = 1;
  char newline = '\n';
};

/// The number of the line that the byte is in; 0 where it is not the first of one.
uint64_t line_at(const std::shared_ptr<const RandomAccessFile>& file, uint64_t at) {
  static std::mutex mutex;
  static Counted counted;
  constexpr uint64_t piece = 1 << 20;
  const std::lock_guard lock(mutex);
  if (counted.file.lock() != file || counted.at > at) counted = {file};
  if (at > 0) {
    const char before = file->read(at - 1, 1).text()[0];
    if (before != '\n' && before != '\r') return 0;
    if (counted.at == 0) counted.newline = before;
  }
  while (counted.at < at) {
    const Bytes bytes = file->read(counted.at, std::min(piece, at - counted.at));
    const std::string_view text = bytes.text();
    counted.line += static_cast<uint64_t>(std::count(text.begin(), text.end(), counted.newline));
    counted.at += text.size();
  }
  return counted.line;
}

}  // namespace

std::string place_of(const Dataset& dataset, int64_t index) {
  const Dataset* of = &dataset;
  int64_t at = index;
  while (const auto* view = dynamic_cast<const View*>(of)) std::tie(of, at) = view->original(at);
  const auto extent = of->extent(at);
  if (!extent || extent->file >= of->files().size()) return dataset.name(index);
  const auto& file = of->files()[extent->file];
  if (!has_lines(*file)) return dataset.name(index);
  const uint64_t line = line_at(file, extent->offset);
  return line == 0 ? dataset.name(index) : fmt::format("{}, line {}", file->path(), line);
}

}  // namespace millrace::data

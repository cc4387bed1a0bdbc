#include "data/formats/lines.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "base/parallel_for.h"

namespace millrace::data {
namespace {

constexpr uint64_t lines_chunk_bytes = 4 << 20, longest_line = uint64_t{1} << 30;

/// Behind the first newline at `from` or later; the end of the file when there is none.
uint64_t behind_newline(const RandomAccessFile& file, uint64_t from) {
  const uint64_t start = from;
  for (uint64_t step = 1 << 12; from < file.size();
       from += step, step = std::min(step * 4, lines_chunk_bytes)) {
    step = std::min(step, file.size() - from);
    const Bytes bytes = file.read(from, step);
    if (const void* newline = std::memchr(bytes.data(), '\n', step))
      return from + static_cast<uint64_t>(static_cast<const uint8_t*>(newline) - bytes.data()) + 1;
    if (from + step - start > longest_line)
      fail<InputError>("{}: the line at byte {} has more than {} bytes; this is no text of lines",
                       file.path(), start, longest_line);
  }
  return file.size();
}

}  // namespace

Lines::Lines(Files files, bool (*wanted)(std::string_view)) : files_(std::move(files)) {
  for (size_t f = 0; f < files_.size(); ++f)
    for (uint64_t at = 0; at < files_[f]->size(); at += lines_chunk_bytes) {
      Chunk chunk;
      chunk.file = f;
      chunk.begin = at;
      chunks_.push_back(chunk);
    }
  parallel_for(static_cast<int64_t>(chunks_.size()), 0, [&](int64_t k) {
    Chunk& chunk = chunks_[static_cast<size_t>(k)];
    const RandomAccessFile& file = *files_[chunk.file];
    const uint64_t stop = std::min(chunk.begin + lines_chunk_bytes, file.size());
    // Lines that begin within the chunk, up to their ends.
    chunk.begin = chunk.begin == 0 ? 0 : behind_newline(file, chunk.begin - 1);
    chunk.end = chunk.begin >= stop ? chunk.begin : behind_newline(file, stop - 1);
    const Bytes bytes = file.read(chunk.begin, chunk.end - chunk.begin);
    const std::string_view text = bytes.text();
    const bool marked = chunk.begin == 0 && text.starts_with("\xef\xbb\xbf");
    for (size_t at = marked ? 3 : 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      if (wanted(text.substr(at, end - at))) {
        chunk.starts.push_back(static_cast<uint32_t>(at));
        chunk.ends.push_back(static_cast<uint32_t>(end));
      }
      at = end + 1;
    }
  });
  std::erase_if(chunks_, [](const Chunk& chunk) { return chunk.starts.empty(); });
  for (Chunk& chunk : chunks_) {
    chunk.first = count_;
    count_ += static_cast<int64_t>(chunk.starts.size());
  }
}

const Lines::Chunk& Lines::chunk_of(int64_t line) const {
  return *std::prev(std::ranges::upper_bound(chunks_, line, {}, &Chunk::first));
}

SampleExtent Lines::extent(int64_t line) const {
  const Chunk& chunk = chunk_of(line);
  const auto at = static_cast<size_t>(line - chunk.first);
  return {chunk.file, chunk.begin + chunk.starts.at(at), uint64_t{chunk.ends.at(at)} - chunk.starts.at(at)};
}

std::string Lines::name(int64_t line) const {
  const SampleExtent at = extent(line);
  return fmt::format("{}, byte {}", files_[at.file]->path(), at.offset);
}

Bytes Lines::read(int64_t line) const {
  const SampleExtent at = extent(line);
  Bytes bytes = files_[at.file]->read(at.offset, at.size);
  return bytes.text().ends_with('\r') ? bytes.part(0, bytes.size() - 1) : bytes;
}

LineDataset::LineDataset(const std::string& path, Files files, bool (*wanted)(std::string_view))
    : Dataset(path), lines_(std::move(files), wanted) {
  if (lines_.count() == 0) fail<InputError>("{}: has no lines; copy it again", path);
}

}  // namespace millrace::data

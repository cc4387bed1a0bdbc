// JSON lines, plain text and CSV as streams: a sample is a line; in CSV line ends within quotes do not count.
#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "data/formats/content.h"
#include "data/formats/csv_sniff.h"
#include "data/formats/streams/stream.h"
#include "data/formats/text_sniff.h"
#include "data/io/compression.h"
#include "data/io/location.h"

namespace millrace::data {
namespace {

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Appends the next line with its end; `quotes`: line ends between an odd and an even double quote are
/// content. False at the end of the input.
bool take_line(StreamInput& input, bool quotes, std::vector<uint8_t>& line) {
  const uint64_t begin = input.offset();
  bool quoted = false;
  while (true) {
    const std::span<const uint8_t> some = input.available();
    if (some.empty()) break;
    size_t end = 0;
    bool found = false;
    for (; end < some.size() && !found; ++end) {
      quoted ^= quotes && some[end] == '"';
      found = some[end] == '\n' && !quoted;
    }
    input.append(some.first(end), line);
    input.skip(end);
    if (line.size() > kMostSampleBytes)
      fail<InputError>("{}: the line from byte {} on has no end within 1 GB", input.path(), begin);
    if (found) return true;
  }
  if (quoted) fail<InputError>("{}: ends within the quotes of the line from byte {} on", input.path(), begin);
  if (line.empty()) return false;
  line.push_back('\n');
  return true;
}

bool is_blank(const std::vector<uint8_t>& line) {
  return text_of(line).find_first_not_of(" \t\r\n") == std::string_view::npos;
}

class LineCutter final : public StreamCutter {
 public:
  enum class Of { json, csv, text };
  explicit LineCutter(Of of) : csv_(of == Of::csv), text_(of == Of::text) {}
  void begin(StreamInput& input) override {
    if (!csv_) return;
    const auto head = input.peek(kStreamHead);
    const CsvShape shape = csv_shape(input.path(), text_of(head), head.size() < kStreamHead, std::nullopt);
    std::vector<uint8_t> line;
    if (shape.header) {
      do line.clear();
      while (take_line(input, true, line) && is_blank(line));
    }
    const std::string header(text_of(line));
    if (!first_ && header != header_)
      fail<InputError>("{}: its first line has other names than the files before", input.path());
    first_ = false;
    header_ = header;
  }
  bool next(StreamInput& input, std::vector<uint8_t>& bytes, uint64_t& offset, std::string&) override {
    do {
      bytes.clear();
      offset = input.offset();
    } while (take_line(input, csv_, bytes) && skips(bytes));
    return !bytes.empty() && !skips(bytes);
  }
  std::string before() const override { return header_; }

 private:
  /// In plain text a line of nothing is a sample, too.
  bool skips(const std::vector<uint8_t>& line) const { return !text_ && is_blank(line); }

  bool csv_, text_, first_ = true;
  std::string header_;
};

/// UTF-8, of which a head may end within a character, or what people write in another code of bytes.
bool is_text(std::span<const uint8_t> head) {
  const std::string_view text = text_of(head);
  const size_t good = utf8_bytes(text);
  return is_written(text) ||
         (good > 0 && good + 3 >= text.size() && text.find('\0') == std::string_view::npos);
}

/// By its name, or by what it begins with where it has none.
bool is_plain_text(std::string_view path, std::span<const uint8_t> head) {
  const std::string_view text = text_of(head);
  const bool whole = head.size() < kStreamHead;
  // Of rows that are longer than that nothing is known: they are CSV's.
  if (!is_text(head) || (!whole && std::count(text.begin(), text.end(), '\n') < 2)) return false;
  return is_piped(path) ? text_format(text, whole, true) == std::string_view("text")
                        : without_compression(path).ends_with(".txt") && !is_delimited_by_tabs(text, whole);
}

}  // namespace

MILLRACE_STREAM_FORMAT(jsonl){
    "jsonl", "JSON lines", 30,
    [](std::string_view path, std::span<const uint8_t> head) {
      std::string_view text = text_of(head);
      if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
      const size_t first = text.find_first_not_of(" \t\r\n");
      return first != std::string_view::npos && text[first] == '{' && is_text(head) &&
             !is_plain_text(path, head);
    },
    []() -> std::unique_ptr<StreamCutter> { return std::make_unique<LineCutter>(LineCutter::Of::json); }};

MILLRACE_STREAM_FORMAT(text){"text", "plain text", 35, is_plain_text, []() -> std::unique_ptr<StreamCutter> {
                               return std::make_unique<LineCutter>(LineCutter::Of::text);
                             }};

MILLRACE_STREAM_FORMAT(csv){
    "csv", "CSV or TSV", 40, [](std::string_view, std::span<const uint8_t> head) { return is_text(head); },
    []() -> std::unique_ptr<StreamCutter> { return std::make_unique<LineCutter>(LineCutter::Of::csv); }};

}  // namespace millrace::data

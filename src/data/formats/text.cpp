// Plain text: a line is a sample, an empty one, too.
#include "base/file.h"
#include "base/format.h"
#include "data/formats/formats.h"
#include "data/formats/lines.h"
#include "data/formats/text_sniff.h"

namespace millrace::data {
namespace {

class Text final : public LineDataset {
 public:
  Text(const std::string& path, Files files) : LineDataset(path, std::move(files), every_line) {
    columns_ = {{"text", ColumnKind::text}};
  }

  Value read(int64_t index, size_t) const override { return std::string(lines_.read(index).text()); }

  bool read_run(int64_t first, int64_t count, std::span<const size_t> columns,
                std::vector<ColumnValues>& values) const override {
    values.assign(columns.size(), {});
    for (ColumnValues& each : values)
      for (int64_t i = first; i < first + count; ++i) {
        const auto line = std::make_shared<const Bytes>(lines_.read(i));
        each.contents.push_back(line->text());
        each.owners.push_back(line);
      }
    return true;
  }
};

class TextWriter final : public DatasetWriter {
 public:
  TextWriter(const std::string& path, const std::vector<Column>& columns) : path_(path), file_(path) {
    for (const Column& column : columns)
      if (columns.size() > 1 || column.kind != ColumnKind::text)
        fail<InputError>(
            "{}: plain text holds one column of texts; it has no place for the column '{}' ({}); choose with "
            "--columns",
            path, columns.back().name, kind_name(columns.back().kind));
  }
  void add(std::span<const Value> values) override {
    const auto* text = std::get_if<std::string>(&values[0]);
    if (!text) fail<InputError>("{}: sample {} has no text, and a line cannot say so", path_, count_);
    if (text->find('\n') != text->npos || text->ends_with('\r'))
      fail<InputError>("{}: sample {} has several lines, and a line is a sample here; write jsonl instead",
                       path_, count_);
    file_.write(*text);
    file_.write("\n");
    ++count_;
  }
  void finish() override {
    if (count_ == 0) fail<InputError>("{}: there are no samples to write", path_);
    file_.commit();
  }

 private:
  std::string path_;
  AtomicFile file_;
  int64_t count_ = 0;
};

}  // namespace

MILLRACE_FORMAT(text){.name = "text",
                      .doc = "plain text, a line a sample (.txt)",
                      .place = 110,
                      .matches =
                          [](std::string_view path, std::span<const uint8_t> head) {
                            constexpr size_t all_asked_for = 4096;
                            const std::string_view text(reinterpret_cast<const char*>(head.data()),
                                                        head.size());
                            return path.ends_with(".txt") && text.find('\0') == std::string_view::npos &&
                                   !is_delimited_by_tabs(text, text.size() < all_asked_for);
                          },
                      .open = open_as<Text>,
                      .create = create_as<TextWriter>,
                      .pipes = true};

}  // namespace millrace::data

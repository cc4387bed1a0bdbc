// Plain text: a line is a sample, an empty one, too.
#include <algorithm>

#include "data/formats/formats.h"
#include "data/formats/lines.h"

namespace millrace::data {
namespace {

class Text final : public LineDataset {
 public:
  Text(const std::string& path, std::vector<std::shared_ptr<const RandomAccessFile>> files)
      : LineDataset(path, std::move(files), every_line) {
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

}  // namespace

const Format text_format{
    "text", "plain text, a line a sample (.txt)",
    [](std::string_view path, std::span<const uint8_t> head) {
      return path.ends_with(".txt") && std::find(head.begin(), head.end(), 0) == head.end();
    },
    [](const std::string& path, std::vector<std::shared_ptr<const RandomAccessFile>> files)
        -> std::unique_ptr<Dataset> { return std::make_unique<Text>(path, std::move(files)); },
    nullptr};

}  // namespace millrace::data

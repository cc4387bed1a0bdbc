// Arrow's own files and streams (Feather version 2 is the file).
// https://arrow.apache.org/docs/format/Columnar.html
#include "base/format.h"
#include "base/has_at.h"
#include "base/number_at.h"
#include "data/formats/arrow_table.h"
#include "data/formats/formats.h"

namespace millrace::data {
namespace {

/// A stream begins with a mark and the size of its schema, which is a multiple of 8.
bool is_stream(std::span<const uint8_t> head) {
  if (head.size() < 16 || !has_at(head, 0, "\xff\xff\xff\xff")) return false;
  const auto size = number_at<uint32_t>(&head[4]);
  return size > 0 && size % 8 == 0 && size < 1 << 26;
}

}  // namespace

MILLRACE_FORMAT(arrow){
    .name = "arrow",
    .doc = "Arrow IPC or Feather (.arrow, .feather; .arrows: a stream)",
    .place = 30,
    .matches =
        [](std::string_view, std::span<const uint8_t> head) {
          return has_at(head, 0, "ARROW1") || has_at(head, 0, "FEA1") || is_stream(head);
        },
    .open =
        [](const std::string& path, Files files) {
          const auto kind_of = [](const RandomAccessFile& file) {
            const Bytes head = file.read(0, std::min<uint64_t>(file.size(), 8));
            if (has_at(head.view(), 0, "FEA1"))
              fail<InputError>("{}: is Feather version 1; write it again as version 2", file.path());
            return has_at(head.view(), 0, "ARROW1") ? arrow_module::FileKind::ipc_file
                                                    : arrow_module::FileKind::ipc_stream;
          };
          const auto kind = kind_of(*files[0]);
          for (const auto& file : files)
            if (kind_of(*file) != kind)
              fail<InputError>("{}: one of {} and {} is an Arrow stream, the other an Arrow file", path,
                               files[0]->path(), file->path());
          return open_arrow_table(kind, path, std::move(files));
        },
    .create =
        [](const std::string& path, const std::vector<Column>& columns) {
          return create_arrow_table(path.ends_with(".arrows") ? arrow_module::FileKind::ipc_stream
                                                              : arrow_module::FileKind::ipc_file,
                                    path, columns);
        },
    .pipes = true};

}  // namespace millrace::data

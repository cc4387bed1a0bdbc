// Apache Parquet, by Arrow. https://parquet.apache.org/docs/file-format/
#include "base/has_at.h"
#include "data/formats/arrow_table.h"
#include "data/formats/formats.h"

namespace millrace::data {

MILLRACE_FORMAT(parquet){
    .name = "parquet",
    .doc = "Parquet (.parquet)",
    .place = 20,
    .matches = [](std::string_view, std::span<const uint8_t> head) { return has_at(head, 0, "PAR1"); },
    .open =
        [](const std::string& path, Files files) {
          return open_arrow_table(arrow_module::FileKind::parquet, path, std::move(files));
        },
    .create =
        [](const std::string& path, const std::vector<Column>& columns) {
          return create_arrow_table(arrow_module::FileKind::parquet, path, columns);
        },
    .pipes = true};

}  // namespace millrace::data

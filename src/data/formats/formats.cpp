#include "data/formats/formats.h"

#include <algorithm>

#include "base/format.h"
#include "base/suggest.h"

namespace millrace::data {

const std::vector<const Format*>& formats() {
  static const std::vector<const Format*> list = {
      &recordio_format, &parquet_format,    &arrow_format, &tfrecord_format, &mds_format,
      &beton_format,    &webdataset_format, &csv_format,   &jsonl_format,    &libsvm_format,
      &text_format,     &idx_format,        &folder_format};
  return list;
}

const Format& format_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Format* format : formats()) {
    if (format->name == name) return *format;
    names.emplace_back(format->name);
  }
  fail<InputError>("there is no format '{}'; did you mean '{}'? There are: {}", name,
                   nearest(std::string(name), names), fmt::join(names, ", "));
}

const Format* format_of(const RandomAccessFile& file) {
  const Bytes head = file.read(0, std::min<uint64_t>(file.size(), 4096));
  for (const Format* format : formats())
    if (format->matches(file.path(), head.view())) return format;
  return nullptr;
}

}  // namespace millrace::data

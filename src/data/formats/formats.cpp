#include "data/formats/formats.h"

namespace millrace::data {

const std::vector<const Format*>& formats() {
  static const std::vector<const Format*> list = {
      &recordio_format, &parquet_format,    &arrow_format, &tfrecord_format, &mds_format,
      &beton_format,    &webdataset_format, &csv_format,   &jsonl_format,    &libsvm_format,
      &text_format,     &idx_format,        &folder_format};
  return list;
}

}  // namespace millrace::data

// The formats that are known; one file each.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/format.h"

namespace millrace::data {

/// All formats with columns; their order is that in which a file is tried.
extern const Format recordio_format;
extern const Format tfrecord_format;
extern const Format beton_format;
extern const Format mds_format;
extern const Format webdataset_format;
extern const Format parquet_format;
extern const Format arrow_format;
extern const Format csv_format;
extern const Format jsonl_format;
extern const Format libsvm_format;
extern const Format text_format;
extern const Format idx_format;
/// Of folders, which open_dataset() knows by being such.
extern const Format folder_format;

const std::vector<const Format*>& formats();
/// The format of this name; InputError names the nearest.
const Format& format_named(std::string_view name);
/// The first format that could be that of the file; null when it is none's.
const Format* format_of(const RandomAccessFile& file);

/// A table of numbers and texts (csv_writer.cpp).
std::unique_ptr<DatasetWriter> create_csv(const std::string& path, const std::vector<Column>& columns);

/// WebDataset shards out of columns (webdataset_writer.cpp).
std::unique_ptr<DatasetWriter> create_webdataset(const std::string& path, const std::vector<Column>& columns);

/// Tars by their indices (tar_indexed.cpp).
std::unique_ptr<Dataset> open_indexed_tars(const std::string& path,
                                           std::vector<std::shared_ptr<const RandomAccessFile>> files,
                                           std::vector<std::shared_ptr<const Index>> indices);

}  // namespace millrace::data

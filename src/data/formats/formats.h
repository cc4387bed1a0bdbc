// The formats that open_source() knows; one file each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/table/dataset.h"
#include "data/table/source.h"

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

/// A table of numbers and texts (csv_writer.cpp).
std::unique_ptr<DatasetWriter> create_csv(const std::string& path, const std::vector<Column>& columns);

/// A folder of class folders. InputError: no pictures, a class folder without any, pictures outside of class
/// folders.
std::unique_ptr<Source> open_folder(const std::string& path);

/// WebDataset shards out of columns (webdataset_writer.cpp).
std::unique_ptr<DatasetWriter> create_webdataset(const std::string& path, const std::vector<Column>& columns);

/// Tars by their indices (tar_indexed.cpp).
std::unique_ptr<Dataset> open_indexed_tars(const std::string& path,
                                           std::vector<std::shared_ptr<const RandomAccessFile>> files,
                                           std::vector<std::shared_ptr<const Index>> indices);

/// Pictures of an opened IDX file with their labels. InputError says which file is missing beside it.
std::unique_ptr<Source> open_idx(const std::string& path, std::unique_ptr<Dataset> dataset);

}  // namespace millrace::data

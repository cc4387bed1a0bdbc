// Data sets in files that Arrow reads and writes: Parquet and Arrow's own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "data/formats/arrow/module.h"

namespace millrace::data {

/// Batches are read when they are asked for, column by column, and kept within a budget of memory. InputError
/// for a damaged file and when no column can be used; IoError when the file or Arrow's libraries cannot be
/// read.
std::unique_ptr<Dataset> open_arrow_table(arrow_module::FileKind kind, const std::string& path, Files files);

/// Batches of up to 65,536 rows or 64 MB. Arrays must have rank 1 and, in a column, one type.
std::unique_ptr<DatasetWriter> create_arrow_table(arrow_module::FileKind kind, const std::string& path,
                                                  const std::vector<Column>& columns);

}  // namespace millrace::data

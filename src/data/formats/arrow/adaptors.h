// What the files of the module share.
#pragma once

#include <arrow/api.h>
#include <arrow/io/interfaces.h>
#include <stdexcept>

#include "data/formats/arrow/module.h"

namespace millrace::data::arrow_module {

[[noreturn]] void fail_with(const arrow::Status& status);
inline void check(const arrow::Status& status) {
  if (!status.ok()) fail_with(status);
}
template <typename T>
T take(arrow::Result<T> result) {
  if (!result.ok()) fail_with(result.status());
  return result.MoveValueUnsafe();
}

/// An Input as Arrow wants it; what is read is not copied.
std::shared_ptr<arrow::io::RandomAccessFile> arrow_file(std::shared_ptr<Input> input);

/// The kind that values of a type become; false when they cannot be used.
bool kind_of(const arrow::DataType& type, ColumnKind& kind);
/// The values of a type that kind_of() takes. std::runtime_error when they are damaged or cannot be held.
ColumnValues values_of(const arrow::ChunkedArray& array);

std::unique_ptr<Reader> open_parquet(std::shared_ptr<Input> input);
std::unique_ptr<Reader> open_ipc_file(std::shared_ptr<Input> input);
std::unique_ptr<Reader> open_ipc_stream(std::shared_ptr<Input> input);
std::unique_ptr<Writer> create_writer(FileKind kind, const std::vector<Column>& columns,
                                      std::shared_ptr<Output> output);

/// Fills `columns` and `refused`; gives the places of the former in the schema.
std::vector<int> usable_columns(const arrow::Schema& schema, Reader& reader);

}  // namespace millrace::data::arrow_module

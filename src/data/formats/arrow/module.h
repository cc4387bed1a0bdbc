// What the shared module around Arrow offers. Arrow's libraries take longer to load than the rest of the
// program, so that they stand in a module of their own, which is loaded when the first Parquet or Arrow file
// is met. Nothing of Arrow's shows here, and nothing of Millrace's outside of these headers is linked into
// the module.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data::arrow_module {

/// A file to read from, by many threads.
class Input {
 public:
  virtual ~Input() = default;
  virtual uint64_t size() const = 0;
  /// [offset, offset + size), which lies within the file; false when it cannot be read, and the caller of the
  /// module knows why.
  virtual bool read(uint64_t offset, uint64_t size, Bytes& bytes) noexcept = 0;
};

class Output {
 public:
  virtual ~Output() = default;
  virtual bool write(const void* data, size_t size) noexcept = 0;
};

/// An opened file. Members but `read` may be called from many threads at once; all throw std::runtime_error.
class Reader {
 public:
  virtual ~Reader() = default;
  std::vector<Column> columns;
  /// Columns that cannot be used, each as "'name' (its type)".
  std::vector<std::string> refused;
  /// Rows of each batch (row group).
  std::vector<int64_t> batches;
  /// All values of one column of a batch. From many threads at once, too.
  virtual ColumnValues read(size_t batch, size_t column) = 0;
};

class Writer {
 public:
  virtual ~Writer() = default;
  /// A batch of rows; arrays of a column are of one type in all batches. Throws std::runtime_error.
  virtual void write(std::span<const ColumnValues> columns) = 0;
  virtual void finish() = 0;
};

enum class FileKind { parquet, ipc_file, ipc_stream };

struct Module {
  std::unique_ptr<Reader> (*open)(FileKind kind, std::shared_ptr<Input> input);
  std::unique_ptr<Writer> (*create)(FileKind kind, const std::vector<Column>& columns,
                                    std::shared_ptr<Output> output);
};

/// The module's only exported name is a function of this type.
using Entry = const Module* (*)();
inline constexpr const char* entry_name = "millrace_arrow_module";

}  // namespace millrace::data::arrow_module

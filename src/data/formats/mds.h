// MosaicML streaming's MDS: the encodings of columns, and the writer with its options (mosaicml/streaming,
// streaming/base/format/mds).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>

#include "data/codecs/arrays/numpy_type.h"

namespace millrace::data {

/// How a column's values are stored: "int", "jpeg", "ndarray:float32:2,3" …
class MdsEncoding {
 public:
  /// InputError, beginning with `where`, for encodings that are not read here; "pkl" with the reason.
  MdsEncoding(std::string name, std::string_view where);

  const std::string& name() const { return name_; }
  ColumnKind kind() const { return kind_; }
  /// The bytes of every value, when they are always as many.
  std::optional<uint64_t> size() const { return size_; }
  /// InputError, beginning with `where`, when the bytes are no such value.
  Value decode(const Bytes& bytes, const std::string& where) const;

 private:
  Value decode_array(const Bytes& bytes, const std::string& where) const;

  enum class Form { number, number_text, text, bytes, pixels, array };
  std::string name_;
  Form form_ = Form::bytes;
  ColumnKind kind_ = ColumnKind::bytes;
  std::optional<NumpyType> type_;              // of numbers, and of arrays where it is fixed
  std::optional<std::vector<int64_t>> shape_;  // of arrays where it is fixed
  std::optional<uint64_t> size_;
};

struct MdsOptions {
  bool zstd = false;
  /// Names as hex_digest() takes them; they go into index.json.
  std::vector<std::string> hashes = {"sha1", "xxh64"};
  /// Of a shard before compression; under 4 GiB.
  uint64_t shard_bytes = uint64_t{1} << 26;
};

/// Writes the folder `path`: shards and index.json. InputError when there is a data set already.
std::unique_ptr<DatasetWriter> create_mds(const std::string& path, const std::vector<Column>& columns,
                                          const MdsOptions& options = {});

}  // namespace millrace::data

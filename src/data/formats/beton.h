// FFCV's .beton, version 2: what reader and writer share (libffcv/ffcv: ffcv/types.py, writer.py,
// memory_allocator.py, fields/). Header: u16 version, u16 fields, u32 page size, u64 samples, u64 place of
// the allocation table. Then 1,041 bytes a field: u8 type, 16 bytes name, 1,024 bytes arguments. Then the
// samples' metadata, a C struct each: float f64, int i64, array u64 place, all aligned; without alignment a
// picture's u8 mode, u16 width, u16 height, u64 place, and u64 place, u64 size of bytes and JSON. Pages
// follow from the next multiple of the page size on: no sample's data straddles two. The allocation table
// {u64 sample, u64 place, u64 size} is last and in no order; only there are the sizes of JPEG files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "data/codecs/arrays/numpy_type.h"

namespace millrace::data::beton {

inline constexpr uint64_t header_size = 24, descriptor_size = 1041, name_size = 16;
inline constexpr uint64_t smallest_page = 1 << 21, usual_page = 1 << 23, largest_page = uint64_t{1} << 31;

enum class FieldType : uint8_t { real, integer, picture, bytes, array, json, tensor, custom = 255 };

struct Field {
  FieldType type = FieldType::real;
  std::string name;
  NumpyType element;           // of arrays
  std::vector<int64_t> shape;  // of arrays
  uint64_t offset = 0;         // in a sample's metadata
};

/// Sets the offsets; the size of a sample's metadata, a multiple of eight when something in it is aligned.
uint64_t lay_out(std::vector<Field>& fields);

std::unique_ptr<DatasetWriter> create(const std::string& path, const std::vector<Column>& columns);

}  // namespace millrace::data::beton

// IDX, the format of MNIST (yann.lecun.com/exdb/mnist): 0, 0, type, rank, big-endian u32 sizes, big-endian
// data; usually gzipped. Types: 8 u8, 9 i8, 11 i16, 12 i32, 13 f32, 14 f64. Labels of x-images-idx3-ubyte are
// in x-labels-idx1-ubyte.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "data/codecs/arrays/numpy_type.h"

namespace millrace::data::idx {

/// Nothing for numbers that are no type.
std::optional<NumpyType> type_of(uint8_t number);

/// "t-images-idx3-ubyte.gz" → "t-labels-idx1-ubyte.gz"; empty where the name says of no images.
std::string labels_name(const std::string& pictures);

/// An array column, or pictures of one size (decoded or not), as `path`; integers or reals called label
/// beside it. A column of numbers alone is `path` itself. InputError for all else.
std::unique_ptr<DatasetWriter> create(const std::string& path, const std::vector<Column>& columns);

}  // namespace millrace::data::idx

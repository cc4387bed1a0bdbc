// Arrays out of the bytes of files, whatever number type they are written in.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <millrace/array.h>

namespace millrace::data {

/// How numbers are written, little-endian: kind 'f', 'i', 'u' or 'b' (bool, one byte) and their size in
/// bytes, as numpy writes them.
struct NumberType {
  char kind = 0;
  int size = 0;
  /// False for types that cannot be read here.
  bool known() const;
};

/// The array whose elements `bytes` begins with; `fortran`: the first dimension goes fastest. What Millrace
/// has no type for is widened: i16 and u16 to i32, u32 and u64 to i64. InputError, worded to follow a name,
/// when the bytes do not suffice, the shape is absurd or a u64 is over 2^63 - 1.
Array number_array(NumberType type, const std::vector<int64_t>& shape, std::span<const uint8_t> bytes,
                   bool fortran = false);

}  // namespace millrace::data

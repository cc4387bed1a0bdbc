// NumPy's types of array elements, and arrays from their bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/array.h>

namespace millrace::data {

/// An element as NumPy stores it.
struct NumpyType {
  char kind = 'f';  // 'f' floating, 'i' signed, 'u' unsigned, 'b' bool
  int size = 4;     // bytes
  bool big_endian = false;
  bool operator==(const NumpyType&) const = default;

  /// False for types that cannot be read here.
  bool known() const;
  /// What arrays of it become here: integers that have no type of their own become the next wider signed one
  /// (i16 and u16: i32; u32 and u64: i64).
  DType dtype() const;
  /// "<f4", "|u1": as in dtype.str.
  std::string descr() const;
  /// "float32", "uint8": as in dtype.name.
  std::string name() const;
};

/// From "<f4", "|b1" (dtype.str) or "float32" (dtype.name). InputError, beginning with `where`, for types
/// that hold no plain numbers of 1 to 8 bytes.
NumpyType parse_numpy_type(std::string_view text, std::string_view where);
/// The type that stores `dtype` unchanged. InputError, beginning with `where`, for bf16.
NumpyType numpy_type_of(DType dtype, std::string_view where);

/// An array from elements in C order; without a copy of more than it takes. InputError, beginning with
/// `where`, when `bytes` is not as long as the shape says, or a number does not fit.
Array array_from_numpy(NumpyType type, const std::vector<int64_t>& shape, std::span<const uint8_t> bytes,
                       std::string_view where);
/// The array whose elements `bytes` begins with; `fortran`: the first dimension goes fastest. InputError,
/// worded to follow a name, when the bytes do not suffice, the shape is absurd or a number does not fit.
Array number_array(NumpyType type, const std::vector<int64_t>& shape, std::span<const uint8_t> bytes,
                   bool fortran = false);
/// The bytes that a shape takes; InputError when that is beyond 2^48.
uint64_t numpy_bytes(NumpyType type, const std::vector<int64_t>& shape, std::string_view where);

}  // namespace millrace::data

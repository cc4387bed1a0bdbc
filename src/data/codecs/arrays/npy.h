// NumPy's .npy (versions 1.0 to 3.0) and .npz (a zip of them, stored or deflated):
// numpy.org/doc/stable/reference/generated/numpy.lib.format.html; PKWARE's APPNOTE 6.3.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/array.h>

namespace millrace::data {

/// Errors are InputErrors, worded to follow a name ("is no .npy file …").

/// Numbers and bools, little-endian, in either order of dimensions (numpy_type.h says what is widened).
/// Object arrays are refused: reading them would run code.
Array parse_npy(std::span<const uint8_t> bytes);
/// Version 1.0, as numpy.save writes it; bf16, which NumPy has no type for, as f32. InputError for narrower
/// numbers that it has none for either.
std::vector<uint8_t> encode_npy(const Array& array);

/// The names of the arrays, without ".npy".
std::vector<std::string> npz_names(std::span<const uint8_t> bytes);
/// One of them; InputError when there is none of this name.
Array parse_npz(std::span<const uint8_t> bytes, std::string_view name);

}  // namespace millrace::data

// How a picture is to be turned, as cameras note it: EXIF's tag Orientation (CIPA DC-008, 4.6.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace millrace::data {

/// 1 to 8 as EXIF counts them, of JPEG (APP1), PNG (eXIf) and WebP (EXIF) files; 1, as it is stored, where
/// nothing good is said.
int exif_orientation(std::span<const uint8_t> file);

/// The number of `size` bytes, 4 at most, that are there.
uint32_t sized_number_at(std::span<const uint8_t> bytes, size_t at, int size, bool big);
/// Moves `at` on to the next marker of a JPEG file that has a length behind it; false where there is none.
bool jpeg_segment(std::span<const uint8_t> file, size_t& at);

/// The first value of a tag of whole numbers in the first directory of a TIFF file, which EXIF data is, too.
std::optional<uint32_t> tiff_tag(std::span<const uint8_t> tiff, uint16_t tag);

inline constexpr uint16_t orientation_tag = 0x0112;

}  // namespace millrace::data

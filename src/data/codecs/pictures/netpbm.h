// Binary Netpbm (PGM "P5", PPM "P6"; netpbm.sourceforge.net/doc/pgm.html): raw pixels behind a small header.
// WebDataset readers know it, so raw pictures are packed without loss.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/codecs/pictures/picture.h"

namespace millrace::data {

/// "P5" or "P6", with a header of three numbers behind it.
bool is_netpbm(std::span<const uint8_t> bytes);

/// Decodes 8-bit P5 and P6 (maximum value 255). Returns "" or the reason why it cannot.
[[nodiscard]] std::string decode_netpbm(std::span<const uint8_t> bytes, Picture& picture);

/// PGM for one channel, PPM for three.
std::vector<uint8_t> encode_netpbm(const Picture& picture);

}  // namespace millrace::data

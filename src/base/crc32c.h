// CRC-32C (Castagnoli; RFC 3720, appendix B.4), as in TFRecord and TensorBoard files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

/// CRC-32C of `size` bytes; `crc` is that of the bytes before them, 0 at the start.
/// crc32c("123456789", 9) == 0xe3069283.
uint32_t crc32c(const void* data, size_t size, uint32_t crc = 0);

/// TFRecord's masked form, for checksums stored beside the data that they cover.
constexpr uint32_t masked_crc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace millrace

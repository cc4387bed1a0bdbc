#include "base/crc32c.h"

#include <cstdint>
#include <doctest/doctest.h>
#include <vector>

using namespace millrace;

namespace {

/// Bit by bit, by the polynomial.
uint32_t plain_crc32c(const uint8_t* bytes, size_t size) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < size; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0u);
  }
  return ~crc;
}

}  // namespace

TEST_CASE("crc32c gives the published check values") {
  CHECK(crc32c("123456789", 9) == 0xe3069283u);
  CHECK(masked_crc32c(0xe3069283u) == 0xc78ab0e5u);
  const std::vector<uint8_t> zeros(32, 0), ones(32, 0xff);  // RFC 3720, B.4
  CHECK(crc32c(zeros.data(), 32) == 0x8a9136aau);
  CHECK(crc32c(ones.data(), 32) == 0x62a8ab43u);
}

TEST_CASE("crc32c in hardware, bit by bit and in pieces agree at any length and alignment") {
  std::vector<uint8_t> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + (i >> 3));
  for (size_t start = 0; start < 9; ++start)
    for (size_t size = 0; size + start < 80; ++size) {
      const uint32_t whole = crc32c(bytes.data() + start, size);
      CHECK(whole == plain_crc32c(bytes.data() + start, size));
      const size_t half = size / 3;
      CHECK(whole == crc32c(bytes.data() + start + half, size - half, crc32c(bytes.data() + start, half)));
    }
}

#include "base/crc32c.h"

#include <array>
#include <cstring>
#include <nmmintrin.h>

namespace millrace {
namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0u);
    table[byte] = crc;
  }
  return table;
}

__attribute__((target("sse4.2"))) uint32_t crc32c_hardware(const uint8_t* bytes, size_t size, uint32_t crc) {
  uint64_t state = ~crc;
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    state = _mm_crc32_u64(state, word);
  }
  uint32_t last = static_cast<uint32_t>(state);
  for (; size > 0; ++bytes, --size) last = _mm_crc32_u8(last, *bytes);
  return ~last;
}

}  // namespace

uint32_t crc32c_table(const void* data, size_t size, uint32_t crc) {
  static constexpr std::array<uint32_t, 256> table = make_table();
  const auto* bytes = static_cast<const uint8_t*>(data);
  crc = ~crc;
  for (size_t i = 0; i < size; ++i) crc = table[(crc ^ bytes[i]) & 0xff] ^ (crc >> 8);
  return ~crc;
}

uint32_t crc32c(const void* data, size_t size, uint32_t crc) {
  static const bool hardware = __builtin_cpu_supports("sse4.2");
  return hardware ? crc32c_hardware(static_cast<const uint8_t*>(data), size, crc)
                  : crc32c_table(data, size, crc);
}

}  // namespace millrace

#include "base/crc32c.h"

#include <cstring>
#include <nmmintrin.h>

namespace millrace {
namespace {

// All CPUs with AVX2, and so all that are supported, have SSE 4.2.
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

uint32_t crc32c(const void* data, size_t size, uint32_t crc) {
  return crc32c_hardware(static_cast<const uint8_t*>(data), size, crc);
}

}  // namespace millrace

// Hostile TFRecord files: what opens can be read and verified whole, or says why not. Checksums of lengths
// are mended first, those of data mostly, or nothing would be let through.
#include <cstring>
#include <vector>

#include "base/crc32c.h"
#include "fuzz/dataset.h"

using namespace millrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  for (size_t at = 0; at + 16 <= size;) {
    const uint32_t crc = masked_crc32c(crc32c(&bytes[at], 8));
    uint64_t length = 0;
    std::memcpy(&length, &bytes[at], 8);
    if (at == 0 && length > size) break;  // compressed, perhaps
    std::memcpy(&bytes[at + 8], &crc, 4);
    if (length > size - at - 16) break;
    uint8_t* stored = &bytes[at + 12 + length];
    const uint32_t behind = masked_crc32c(crc32c(&bytes[at + 12], length));
    if (stored[0] % 8 != 7) std::memcpy(stored, &behind, 4);
    at += 16 + length;
  }
  fuzz::read_file("tfrecord", "input.tfrecord", std::move(bytes));
  return 0;
}

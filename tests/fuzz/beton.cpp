// Hostile FFCV files: what opens can be read whole, or says why not.
// The first byte says what of the header is made to fit, or little would be let through.
#include <algorithm>
#include <cstring>
#include <vector>

#include "fuzz/dataset.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 25) return 0;
  std::vector<uint8_t> bytes(data + 1, data + size);
  if (data[0] & 1) {  // a version and a page size that let it through
    const uint16_t version = 2;
    const uint32_t page = 1 << 21;
    std::memcpy(&bytes[0], &version, sizeof version);
    std::memcpy(&bytes[4], &page, sizeof page);
  }
  if (data[0] & 2) {  // the table is what the last byte says
    const uint64_t table = bytes.size() - std::min<size_t>(bytes.size(), size_t{24} * (bytes.back() % 8));
    std::memcpy(&bytes[16], &table, sizeof table);
  }
  millrace::fuzz::read_file("beton", "input.beton", std::move(bytes));
  return 0;
}

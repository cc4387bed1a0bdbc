// Hostile Arrow files and streams: what opens reads the same value by value as in one run, or says why not.
// The first two bytes are the size of a file's footer, which is put at the end where readers look for it; a
// stream has none.
#include <algorithm>
#include <cstring>
#include <vector>

#include "fuzz/dataset.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) { return millrace::fuzz::watch_arrow(); }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto footer = static_cast<uint32_t>(std::min<size_t>(data[0] + data[1] * 256u, size - 2));
  std::vector<uint8_t> bytes(data + 2, data + size);
  if (bytes.size() >= 6 && std::memcmp(bytes.data(), "ARROW1", 6) == 0) {
    bytes.resize(bytes.size() + 10);
    std::memcpy(&bytes[bytes.size() - 10], &footer, 4);
    std::memcpy(&bytes[bytes.size() - 6], "ARROW1", 6);
  }
  millrace::fuzz::read_table("arrow", "input.arrow", std::move(bytes));
  return 0;
}

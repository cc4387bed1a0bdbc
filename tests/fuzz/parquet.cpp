// Hostile Parquet files: what opens reads the same value by value as in one run, or says why not. The first
// two bytes are the size of the footer, which is put at the end where readers look for it.
#include <algorithm>
#include <cstring>
#include <vector>

#include "fuzz/dataset.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) { return millrace::fuzz::watch_arrow(); }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto footer = static_cast<uint32_t>(std::min<size_t>(data[0] + data[1] * 256u, size - 2));
  std::vector<uint8_t> bytes(data + 2, data + size);
  bytes.resize(bytes.size() + 8);
  std::memcpy(&bytes[bytes.size() - 8], &footer, 4);
  std::memcpy(&bytes[bytes.size() - 4], "PAR1", 4);
  millrace::fuzz::read_table("parquet", "input.parquet", std::move(bytes));
  return 0;
}

// Hostile JSON lines: what opens can be read whole, or says why not.
#include "fuzz/dataset.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::fuzz::read_file("jsonl", "input.jsonl", std::vector<uint8_t>(data, data + size));
  return 0;
}

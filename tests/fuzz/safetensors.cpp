// Hostile safetensors files: every tensor that a header claims can be copied out.
#include "track/safetensors.h"

#include "fuzz/fuzz.h"

using namespace millrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::refuse_or_take([&] {
    const track::SafeTensors file({data, size}, "input.safetensors");
    for (const std::string& name : file.names()) file.tensor(name);
  });
  return 0;
}

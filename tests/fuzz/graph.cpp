// A graph text that is read is written back as one that says the same.
#include <cstdlib>

#include <millrace/graph.h>

#include "fuzz/fuzz.h"

using namespace millrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::refuse_or_take([&] {
    const std::string written = Graph::parse(fuzz::text(data, size)).str();
    if (Graph::parse(written).str() != written) std::abort();
  });
  return 0;
}

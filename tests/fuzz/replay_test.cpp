// What the fuzzers begin with, and some damaged forms of it, in a second or two: so that each change meets
// them, and so do the sanitizers' builds.
#include <algorithm>
#include <cstdint>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <millrace/random.h>

#define MILLRACE_FUZZER(name) extern "C" int fuzz_##name(const uint8_t* data, size_t size);
#include "fuzzers.inc"
#undef MILLRACE_FUZZER

namespace {

using Bytes = std::vector<uint8_t>;

struct Fuzzer {
  const char* name;
  int (*run)(const uint8_t*, size_t);
};

const Fuzzer kFuzzers[] = {
#define MILLRACE_FUZZER(name) {#name, fuzz_##name},
#include "fuzzers.inc"
#undef MILLRACE_FUZZER
};

Bytes content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Cut short, or with some bytes changed.
Bytes damaged(Bytes bytes, uint64_t number) {
  millrace::RandomStream random(11, number);
  if (bytes.empty()) return bytes;
  if (number % 4 == 0) bytes.resize(random.below(static_cast<uint32_t>(bytes.size())));
  for (uint32_t i = random.below(4); i > 0 && !bytes.empty(); --i) {
    static constexpr uint8_t kExtremes[] = {0x00, 0x01, 0x7F, 0x80, 0xFF};
    const uint32_t at = random.below(static_cast<uint32_t>(bytes.size()));
    bytes[at] = random.below(2) ? kExtremes[random.below(5)] : static_cast<uint8_t>(random.next());
  }
  return bytes;
}

}  // namespace

TEST_CASE("the fuzzers' seeds, whole and damaged, are read or refused") {
  constexpr uint64_t kForms = 40;
  for (const Fuzzer& fuzzer : kFuzzers) {
    CAPTURE(fuzzer.name);
    int seeds = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(MILLRACE_FUZZ_SEEDS) / fuzzer.name)) {
      const Bytes whole = content(entry.path());
      // Memory of its own and of the very size, so that a sanitizer sees a read beyond the end.
      for (uint64_t form = 0; form <= kForms; ++form) {
        const Bytes bytes = form == 0 ? whole : damaged(whole, form);
        const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
        CHECK(fuzzer.run(exact.data(), exact.size()) == 0);
      }
      ++seeds;
    }
    CHECK(seeds > 0);
  }
}

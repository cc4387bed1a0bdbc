// Any text as DALI's index of a small tar: its members lie in the tar, or it is refused.
#include <cstdlib>

#include "data/formats/dali_index.h"
#include "data/formats/tar_members.h"
#include "fuzz/fuzz.h"

using namespace millrace;
using namespace millrace::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string tar = tar_header("a.cls", 1) + "7" + std::string(511, '\0') +
                                 tar_header("a.txt", 2) + "hi" + std::string(510 + 1024, '\0');
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(tar.data()), tar.size());
  fuzz::refuse_or_take([&] {
    for (const auto& sample : parse_dali_index(fuzz::text(data, size), bytes))
      for (const DaliMember& member : sample)
        if (member.offset > bytes.size() || member.size > bytes.size() - member.offset) std::abort();
  });
  return 0;
}

// Any bytes as a tokenizer.json or vocab.txt, and what follows a byte 0 as a text: refused, or ids of its
// vocabulary that can be decoded.
#include "data/codecs/text/tokenizer.h"

#include <cstdlib>

#include "fuzz/fuzz.h"

using namespace millrace;
using namespace millrace::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all = fuzz::text(data, size), file = all.substr(0, all.find('\0'));
  fuzz::refuse_or_take([&] {
    const auto tokenizer =
        file.starts_with("{") ? parse_tokenizer_json(file, "fuzz") : parse_vocabulary(file, "fuzz");
    for (const bool special : {false, true}) {
      const std::vector<int32_t> ids =
          tokenizer->encode(all.substr(std::min(file.size() + 1, all.size())), special);
      for (const int32_t id : ids)
        if (id < 0 || id >= tokenizer->size()) std::abort();
      (void)tokenizer->decode(ids, special);
    }
  });
  return 0;
}

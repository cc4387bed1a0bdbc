// Any bytes as a text for tokenisers of each kind; byte-level BPE must give it back, ill-formed parts as
// U+FFFD.
#include <cstdlib>

#include "data/codecs/text/tokenizer.h"
#include "data/codecs/text/unicode.h"
#include "fuzz/fuzz.h"

using namespace millrace;
using namespace millrace::data;

namespace {

std::shared_ptr<const Tokenizer> byte_level() {
  std::string vocabulary;
  std::string merges = R"("t h", "th e", "\u0120 the")";
  for (int i = 0; i < 256; ++i) {
    const bool printable = (i >= '!' && i <= '~') || (i >= 0xa1 && i <= 0xac) || i >= 0xae;
    static int next = 0x100;
    char code[16];
    std::snprintf(code, sizeof code, "\"\\u%04x\": ", printable ? i : next++);
    vocabulary += code + std::to_string(i) + ", ";
  }
  vocabulary += R"("th": 256, "the": 257, "\u0120the": 258)";
  return parse_tokenizer_json(
      R"({"model": {"type": "BPE", "vocab": {)" + vocabulary + R"(}, "merges": [)" + merges +
          R"(]}, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"}})",
      "byte level");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto bytes = byte_level();
  static const auto bert = parse_vocabulary("[UNK]\n[CLS]\n[SEP]\na\n##a\nthe\n.\n", "bert");
  static const auto spaces = parse_tokenizer_json(
      R"({"model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "▁": 1, "a": 2, "▁a": 3}, "merges": ["▁ a"]},
          "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "StripAccents"}, {"type": "Strip"}]},
          "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true},
          "added_tokens": [{"id": 4, "content": "<s>", "lstrip": true, "rstrip": true, "special": true, "normalized": false}]})",
      "spaces");
  const std::string_view text = fuzz::text(data, size);
  fuzz::refuse_or_take([&] {
    if (bytes->decode(bytes->encode(text), false) != make_well_formed(text)) std::abort();
    for (const auto& tokenizer : {bert, spaces})
      for (const int32_t id : tokenizer->encode(text))
        if (id < 0 || id >= tokenizer->size()) std::abort();
  });
  return 0;
}

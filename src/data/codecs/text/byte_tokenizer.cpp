#include "data/codecs/text/tokenizer.h"

namespace millrace::data {
namespace {

class ByteTokenizer : public Tokenizer {
 public:
  std::string description() const override { return "bytes"; }
  int64_t size() const override { return 256; }
  void encode(std::string_view text, bool, std::vector<int32_t>& ids) const override {
    ids.reserve(ids.size() + text.size());
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  }
  std::string decode(std::span<const int32_t> ids, bool) const override {
    std::string text;
    for (const int32_t id : ids)
      if (id >= 0 && id < 256) text += static_cast<char>(id);
    return text;
  }
  std::string token(int32_t id) const override { return decode(std::span(&id, 1), false); }
  uint32_t digest() const override { return 0; }
  std::optional<int32_t> id(std::string_view token) const override {
    if (token.size() != 1) return std::nullopt;
    return static_cast<unsigned char>(token[0]);
  }
};

}  // namespace

std::shared_ptr<const Tokenizer> byte_tokenizer() { return std::make_shared<ByteTokenizer>(); }

}  // namespace millrace::data

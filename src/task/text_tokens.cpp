#include <algorithm>
#include <memory>

#include "base/format.h"
#include "data/codecs/text/tokenizer.h"
#include "task/generate.h"

namespace millrace::task {
namespace {

class TokenizerTokens final : public TextTokens {
 public:
  explicit TokenizerTokens(const std::string& tokenizer) : tokenizer_(data::open_tokenizer(tokenizer)) {
    // As GPT-2, LLaMA 2 and 3, Qwen, Gemma and BERT call it.
    for (const char* name : {"<|endoftext|>", "</s>", "<|end_of_text|>", "<|im_end|>", "<eos>", "[SEP]"})
      if (!end_) end_ = tokenizer_->id(name);
    const std::vector<int32_t> whole = tokenizer_->encode("a", true), own = tokenizer_->encode("a", false);
    first_.assign(whole.begin(), std::search(whole.begin(), whole.end(), own.begin(), own.end()));
  }

  std::vector<int32_t> encode(const std::string& text) const override {
    std::vector<int32_t> ids = first_;
    const std::vector<int32_t> own = tokenizer_->encode(text, false);
    // Whoever writes the first token of a text himself wants it once.
    const bool written =
        !own.empty() && own.size() >= first_.size() && std::equal(first_.begin(), first_.end(), own.begin());
    if (written) ids.clear();
    ids.insert(ids.end(), own.begin(), own.end());
    return ids;
  }
  std::string decode(std::span<const int32_t> ids) const override { return tokenizer_->decode(ids, false); }
  std::vector<int32_t> beginning() const override {
    if (!first_.empty() || !end_) return first_;
    return {*end_};
  }
  std::optional<int32_t> end() const override { return end_; }

 private:
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::vector<int32_t> first_;  // put in front of each text
  std::optional<int32_t> end_;
};

}  // namespace

std::unique_ptr<TextTokens> text_tokens(const std::string& tokenizer) {
  return std::make_unique<TokenizerTokens>(tokenizer);
}

}  // namespace millrace::task

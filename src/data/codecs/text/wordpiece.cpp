// WordPiece as BERT has it (Devlin et al., arXiv 1810.04805): of the rest of a word the longest piece in the
// vocabulary comes first; a word that cannot be cut so is unknown.
#include <algorithm>

#include "data/codecs/text/pipeline.h"
#include "data/codecs/text/unicode.h"

namespace millrace::data {
namespace {

class WordPiece : public TokenModel {
 public:
  WordPiece(Vocabulary vocabulary, const std::string& unknown, std::string prefix, int64_t longest_word,
            const std::string& where)
      : prefix_(std::move(prefix)), longest_word_(longest_word) {
    vocabulary_ = std::move(vocabulary);
    const auto id = vocabulary_.find(unknown);
    if (id == vocabulary_.end())
      fail<InputError>("{}: the unk_token '{}' is not in the vocabulary", where, unknown);
    unknown_ = id->second;
    for (const auto& [token, number] : vocabulary_) longest_piece_ = std::max(longest_piece_, token.size());
    if (longest_piece_ > kLongestPiece)
      fail<InputError>("{}: the vocabulary has a token of {} bytes; WordPiece's have {} at most", where,
                       longest_piece_, kLongestPiece);
  }

  const char* name() const override { return "WordPiece"; }

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    const size_t before = ids.size();
    bool known = count_characters(word) <= longest_word_;
    std::string piece;
    for (size_t begin = 0; known && begin < word.size();) {
      // No piece is longer than the vocabulary's longest token.
      size_t end = std::min(word.size(), begin + longest_piece_);
      while (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xc0) == 0x80) --end;
      known = false;
      piece = begin > 0 ? prefix_ : "";
      const size_t decorated = piece.size();
      piece.append(word, begin, end - begin);
      while (end > begin) {
        if (const auto found = vocabulary_.find(piece); found != vocabulary_.end()) {
          ids.push_back(found->second);
          known = true;
          break;
        }
        previous_character(word, end);
        piece.resize(decorated + (end - begin));
      }
      begin = end;
    }
    if (known) return;
    ids.resize(before);
    ids.push_back(unknown_);
  }

 private:
  static constexpr size_t kLongestPiece = 256;  // every beginning of it is looked up
  std::string prefix_;
  int64_t longest_word_;
  size_t longest_piece_ = 0;
  int32_t unknown_ = 0;
};

}  // namespace

std::unique_ptr<TokenModel> make_wordpiece(const Json& json) {
  const int64_t longest =
      json.has("max_input_chars_per_word") ? json.at("max_input_chars_per_word").integer(0, 1000) : 100;
  return std::make_unique<WordPiece>(read_vocabulary(json), json.text("unk_token", "[UNK]"),
                                     json.text("continuing_subword_prefix", "##"), longest, json.where);
}

std::unique_ptr<TokenModel> make_wordpiece(Vocabulary vocabulary, std::string unknown) {
  return std::make_unique<WordPiece>(std::move(vocabulary), unknown, "##", 100, "the vocabulary");
}

}  // namespace millrace::data

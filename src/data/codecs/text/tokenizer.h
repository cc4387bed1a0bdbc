// Tokenisers: from text to the numbers of a vocabulary and back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::data {

/// All members may be called from many threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// What it is, for people: "bytes", "BPE".
  virtual std::string description() const = 0;
  /// Ids are 0 … size() - 1.
  virtual int64_t size() const = 0;
  /// Appends the ids of `text` (bytes that are no UTF-8 are taken as U+FFFD, but by "byte"), in time linear
  /// in its length. `special`: with what the tokeniser puts around a text ([CLS] …), and cut to its longest
  /// length where it has one.
  virtual void encode(std::string_view text, bool special, std::vector<int32_t>& ids) const = 0;
  /// The text of ids; those that are none are left out, special ones too where `skip_special`.
  virtual std::string decode(std::span<const int32_t> ids, bool skip_special) const = 0;
  /// How the vocabulary writes an id; "" when it is none.
  virtual std::string token(int32_t id) const = 0;
  virtual std::optional<int32_t> id(std::string_view token) const = 0;
  /// Of its file's content: two tokenisers with one digest do the same.
  virtual uint32_t digest() const = 0;

  std::vector<int32_t> encode(std::string_view text, bool special = true) const {
    std::vector<int32_t> ids;
    encode(text, special, ids);
    return ids;
  }
};

/// "byte" (256 ids, the bytes themselves), or a file: Hugging Face's tokenizer.json (BPE or WordPiece), or a
/// vocab.txt of WordPiece as BERT's (which is lower-cased as BERT's uncased models do, unless a word of it
/// has capital letters). InputError names what is wrong with it or not supported, IoError when it cannot be
/// read.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& text);

std::shared_ptr<const Tokenizer> byte_tokenizer();
/// `name` stands for the file in messages.
std::shared_ptr<const Tokenizer> parse_tokenizer_json(std::string_view json, const std::string& name);
std::shared_ptr<const Tokenizer> parse_vocabulary(std::string_view lines, const std::string& name);

}  // namespace millrace::data

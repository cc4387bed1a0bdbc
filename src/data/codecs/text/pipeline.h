// The parts of a tokenizer.json, each with the meaning that Hugging Face's tokenizers 0.23 give it (its Rust
// sources and its package from PyPI, which the tests compare with). Texts between them are well-formed UTF-8.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/text_hash.h"

namespace millrace::data {

using Vocabulary = TextMap<int32_t>;

/// An object of the file with its place, "model.vocab"; the errors of a file's content are InputErrors that
/// name it.
struct Json {
  const nlohmann::json& value;
  std::string where;  // "tokenizer.json: pre_tokenizer"

  bool has(const char* key) const {
    return value.is_object() && value.contains(key) && !value[key].is_null();
  }
  /// What stands at a key; InputError when there is nothing.
  Json at(const char* key) const;
  Json item(size_t i) const { return {value[i], fmt::format("{}[{}]", where, i)}; }
  /// Of these kinds, or InputError.
  std::string text() const;
  bool flag() const;
  int64_t integer(int64_t least, int64_t most) const;
  /// An array; Json{…}.item(i) of each.
  size_t items() const;

  std::string text(const char* key, std::optional<std::string> usual = std::nullopt) const;
  bool flag(const char* key, std::optional<bool> usual = std::nullopt) const;
  /// The "type" of a part; of the model, BPE where none is written, as old files have it.
  std::string type() const { return text("type"); }
  [[noreturn]] void unsupported(const std::string& what) const {
    fail<InputError>("{}: {} is not supported", where, what);
  }
};

/// What a Split, Replace … looks for: a text, or a regular expression in Oniguruma's syntax as far as ICU
/// means the same by it. Gives the ranges [begin, end) of the matches, one behind the other; all of the text
/// may be asked for at once, in linear time for sensible expressions. InputError when an expression takes too
/// long. It and the next three may be called from many threads at once.
using Pattern = std::function<void(std::string_view text, std::vector<std::pair<size_t, size_t>>& matches)>;
/// {"String": …} or {"Regex": …}.
Pattern make_pattern(const Json& json);

/// Changes a text before it is cut.
using Normalizer = std::function<void(std::string& text)>;

/// A part of a text.
struct Word {
  std::string text;
  bool first = false;  // where the whole text begins
};
/// Cuts words into smaller ones; none is empty.
using PreTokenizer = std::function<void(std::vector<Word>& words)>;

/// Makes of tokens what, one behind the other, is the text.
using Decoder = std::function<void(std::vector<std::string>& tokens)>;

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  virtual const char* name() const = 0;
  virtual void encode(std::string_view word, std::vector<int32_t>& ids) const = 0;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  Vocabulary vocabulary_;
};

/// InputError when a part makes so much more of a text that a few of them would fill any memory.
void check_growth(const std::string& where, size_t before, size_t after);

constexpr int kDeepest = 8;  // Sequences in each other
Normalizer make_normalizer(const Json& json, int depth = 0);
PreTokenizer make_pre_tokenizer(const Json& json, int depth = 0);
Decoder make_decoder(const Json& json, int depth = 0);

inline size_t text_size(const std::string& text) { return text.size(); }
inline size_t text_size(const Word& word) { return word.text.size(); }
template <typename T>
size_t text_size(const std::vector<T>& list) {
  size_t sum = 0;
  for (const T& each : list) sum += text_size(each);
  return sum;
}

/// The parts of a Sequence one after the other. `where`: for the errors of check_growth().
template <typename Part>
Part sequence(const Json& list, const std::string& where, int depth, Part (*make)(const Json&, int)) {
  std::vector<Part> parts;
  for (size_t i = 0; i < list.items(); ++i) parts.push_back(make(list.item(i), depth + 1));
  return [parts = std::move(parts), where](auto& changed) {
    const size_t before = text_size(changed);
    for (const Part& part : parts) {
      part(changed);
      check_growth(where, before, text_size(changed));
    }
  };
}

/// Words longer than this are worked off without a cache.
constexpr size_t kLongestCached = 64;
std::unique_ptr<TokenModel> make_bpe(const Json& json);
std::unique_ptr<TokenModel> make_wordpiece(const Json& json);
std::unique_ptr<TokenModel> make_wordpiece(Vocabulary vocabulary, std::string unknown);
/// "vocab": ids 0 … without large gaps.
Vocabulary read_vocabulary(const Json& json);

/// GPT-2's characters for bytes: printable Latin-1 stands for itself, the others come from U+0100 on.
const std::string& byte_character(uint8_t byte);
/// The byte that a character stands for, or -1.
int byte_of_character(char32_t character);

}  // namespace millrace::data

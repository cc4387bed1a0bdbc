// Pre-tokenisers of tokenizer.json: what cuts a text into words, which the model sees one by one.
#include <algorithm>
#include <array>

#include "data/codecs/text/pipeline.h"
#include "data/codecs/text/unicode.h"

namespace millrace::data {
namespace {

using Range = std::pair<size_t, size_t>;

/// A range of a word, and whether it is what was looked for.
struct Part {
  size_t begin, end;
  bool match;
};
enum class Behaviour { removed, isolated, contiguous, merged_with_previous, merged_with_next };

Behaviour behaviour_of(const Json& json, const char* key, std::optional<std::string> usual = std::nullopt) {
  const std::string text = json.text(key, std::move(usual));
  if (text == "Removed") return Behaviour::removed;
  if (text == "Isolated") return Behaviour::isolated;
  if (text == "Contiguous") return Behaviour::contiguous;
  if (text == "MergedWithPrevious") return Behaviour::merged_with_previous;
  if (text == "MergedWithNext") return Behaviour::merged_with_next;
  json.unsupported(fmt::format("the behavior '{}'", text));
}

/// The whole word in ranges: matches, and what is between them.
std::vector<Part> parts_of(std::string_view word, const std::vector<Range>& matches, bool invert) {
  std::vector<Part> parts;
  size_t at = 0;
  for (const auto& [begin, end] : matches) {
    if (at != begin) parts.push_back({at, begin, invert});
    parts.push_back({begin, end, !invert});
    at = end;
  }
  if (at != word.size()) parts.push_back({at, word.size(), invert});
  return parts;
}

/// A delimiter joins what is beside it, but of several in a row only the first (or, from behind, the last).
std::vector<Part> merged(std::vector<Part> parts, bool with_next) {
  if (with_next) std::reverse(parts.begin(), parts.end());
  std::vector<Part> result;
  bool before = false;
  for (const Part& part : parts) {
    if (part.match && !before && !result.empty())
      (with_next ? result.back().begin : result.back().end) = with_next ? part.begin : part.end;
    else
      result.push_back({part.begin, part.end, false});
    before = part.match;
  }
  if (with_next) std::reverse(result.begin(), result.end());
  return result;
}

std::vector<Part> behave(std::vector<Part> parts, Behaviour behaviour) {
  switch (behaviour) {
    case Behaviour::isolated:
      return parts;
    case Behaviour::removed:
      std::erase_if(parts, [](const Part& part) { return part.match; });
      return parts;
    case Behaviour::contiguous: {
      std::vector<Part> result;
      for (const Part& part : parts)
        if (!result.empty() && result.back().match == part.match)
          result.back().end = part.end;
        else
          result.push_back(part);
      return result;
    }
    case Behaviour::merged_with_previous:
      return merged(std::move(parts), false);
    case Behaviour::merged_with_next:
      return merged(std::move(parts), true);
  }
  return parts;
}

/// Cuts each word on its own: cut(word, result).
template <typename Cut>
PreTokenizer each_word(Cut cut) {
  return [cut = std::move(cut)](std::vector<Word>& words) {
    std::vector<Word> result;
    for (Word& word : words) cut(word, result);
    words = std::move(result);
  };
}

void add_parts(const Word& word, const std::vector<Part>& parts, std::vector<Word>& result) {
  for (const Part& part : parts)
    if (part.end > part.begin)
      result.push_back({word.text.substr(part.begin, part.end - part.begin), word.first && part.begin == 0});
}

/// Every character of a class is a match of its own.
PreTokenizer characters(bool (*test)(char32_t), Behaviour behaviour) {
  return each_word([=](const Word& word, std::vector<Word>& result) {
    std::vector<Range> matches;
    for (size_t at = 0; at < word.text.size();) {
      const size_t begin = at;
      if (test(next_character(word.text, at))) matches.emplace_back(begin, at);
    }
    add_parts(word, behave(parts_of(word.text, matches, false), behaviour), result);
  });
}

PreTokenizer split(Pattern pattern, Behaviour behaviour, bool invert) {
  return each_word(
      [pattern = std::move(pattern), behaviour, invert](const Word& word, std::vector<Word>& result) {
        std::vector<Range> matches;
        pattern(word.text, matches);
        add_parts(word, behave(parts_of(word.text, matches, invert), behaviour), result);
      });
}

/// Runs of word characters, and runs of what is neither those nor white space.
void cut_whitespace(const Word& word, std::vector<Word>& result) {
  enum class What { space, inside, other };
  std::vector<Part> parts;
  What before = What::space;
  for (size_t at = 0; at < word.text.size();) {
    const size_t begin = at;
    const char32_t c = next_character(word.text, at);
    const What what = is_word(c) ? What::inside : is_space(c) ? What::space : What::other;
    if (what != What::space) {
      if (what == before)
        parts.back().end = at;
      else
        parts.push_back({begin, at, true});
    }
    before = what;
  }
  add_parts(word, parts, result);
}

/// The words of GPT-2's expression: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|
/// ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::vector<Part> gpt2_words(std::string_view text) {
  enum class What { space, letter, number, other };
  const auto class_at = [&](size_t& at) {
    const char32_t c = next_character(text, at);
    return is_letter(c)   ? What::letter
           : is_number(c) ? What::number
           : is_space(c)  ? What::space
                          : What::other;
  };
  const auto run = [&](size_t at, What what) {  // the end of a run of that class
    for (size_t next = at; next < text.size(); at = next)
      if (class_at(next) != what) return at;
    return text.size();
  };
  std::vector<Part> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (text[at] == '\'') {
      static constexpr std::string_view endings[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
      for (const std::string_view ending : endings)
        if (at == begin && text.substr(at, ending.size()) == ending) at += ending.size();
    }
    if (at == begin) {
      size_t next = at;
      What what = class_at(next);
      if (text[at] == ' ' && next < text.size()) {  // one blank belongs to what follows
        const size_t behind = next;
        if (const What following = class_at(next); following != What::space)
          what = following;
        else
          next = behind;
      }
      at = run(next, what);
      if (what == What::space && at < text.size()) {
        // The last character of white space before something else stands alone, or with that if it is a
        // blank.
        size_t last = at;
        previous_character(text, last);
        if (last > begin) at = last;
      }
    }
    parts.push_back({begin, at, true});
  }
  return parts;
}

PreTokenizer byte_level(bool prefix, bool cuts) {
  return each_word([=](Word& word, std::vector<Word>& result) {
    if (prefix && !word.text.starts_with(' ')) word.text.insert(word.text.begin(), ' ');
    std::vector<Part> parts = {{0, word.text.size(), true}};
    if (cuts) parts = gpt2_words(word.text);
    for (const Part& part : parts) {
      Word& added = result.emplace_back();
      added.first = word.first && part.begin == 0;
      for (size_t i = part.begin; i < part.end; ++i)
        added.text += byte_character(static_cast<uint8_t>(word.text[i]));
    }
  });
}

PreTokenizer metaspace_words(const Json& json) {
  const std::string replacement = json.text("replacement"),
                    scheme =
                        json.text("prepend_scheme", json.flag("add_prefix_space", true) ? "always" : "never");
  const bool splits = json.flag("split", true);
  if (count_characters(replacement) != 1)
    fail<InputError>("{}: the replacement must be one character, not '{}'", json.where, replacement);
  if (scheme != "always" && scheme != "first" && scheme != "never")
    json.unsupported(fmt::format("the prepend_scheme '{}'", scheme));
  return each_word([=](Word& word, std::vector<Word>& result) {
    std::string text;
    for (const char c : word.text)
      if (c == ' ')
        text += replacement;
      else
        text += c;
    if (!text.starts_with(replacement) && (scheme == "always" || (scheme == "first" && word.first)))
      text.insert(0, replacement);
    word.text = std::move(text);
    std::vector<Part> parts = {{0, word.text.size(), false}};
    if (splits) {
      std::vector<Range> matches;
      for (size_t at = 0; (at = word.text.find(replacement, at)) != std::string::npos;
           at += replacement.size())
        matches.emplace_back(at, at + replacement.size());
      parts = behave(parts_of(word.text, matches, false), Behaviour::merged_with_next);
    }
    add_parts(word, parts, result);
  });
}

PreTokenizer delimited(const Json& json) {
  const std::string delimiter = json.text("delimiter");
  const nlohmann::json pattern{{"String", delimiter}};
  return split(make_pattern({pattern, json.where}), Behaviour::removed, false);
}

/// First white space, then punctuation.
PreTokenizer bert_words() {
  return [spaces = characters(is_space, Behaviour::removed),
          punctuation = characters(is_punctuation, Behaviour::isolated)](std::vector<Word>& words) {
    spaces(words);
    punctuation(words);
  };
}

}  // namespace

const std::string& byte_character(uint8_t byte) {
  static const std::array<std::string, 256> characters = [] {
    std::array<std::string, 256> made;
    char32_t next = 0x100;
    for (char32_t b = 0; b < 256; ++b) {
      const bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      append_utf8(printable ? b : next++, made[b]);
    }
    return made;
  }();
  return characters[byte];
}

int byte_of_character(char32_t character) {
  static const std::array<int, 0x144> bytes = [] {
    std::array<int, 0x144> made;
    made.fill(-1);
    for (int b = 0; b < 256; ++b) {
      size_t at = 0;
      made[next_character(byte_character(static_cast<uint8_t>(b)), at)] = b;
    }
    return made;
  }();
  return character < bytes.size() ? bytes[character] : -1;
}

PreTokenizer make_pre_tokenizer(const Json& json, int depth) {
  const std::string type = json.type();
  if (depth > kDeepest) json.unsupported("such a deep nesting of Sequences");
  if (type == "Sequence") {
    const Json list = json.at("pretokenizers");
    return sequence(list, list.where, depth, make_pre_tokenizer);
  }
  if (type == "ByteLevel") return byte_level(json.flag("add_prefix_space"), json.flag("use_regex", true));
  if (type == "Whitespace") return each_word(cut_whitespace);
  if (type == "WhitespaceSplit") return characters(is_space, Behaviour::removed);
  if (type == "BertPreTokenizer") return bert_words();
  if (type == "Metaspace") return metaspace_words(json);
  if (type == "Split")
    return split(make_pattern(json.at("pattern")), behaviour_of(json, "behavior"),
                 json.flag("invert", false));
  if (type == "Punctuation") return characters(is_punctuation, behaviour_of(json, "behavior", "Isolated"));
  if (type == "Digits")
    return characters(is_number,
                      json.flag("individual_digits") ? Behaviour::isolated : Behaviour::contiguous);
  if (type == "CharDelimiterSplit") return delimited(json);
  json.unsupported(fmt::format("the pre-tokenizer '{}'", type));
}

}  // namespace millrace::data

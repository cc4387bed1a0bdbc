// Normalisers of tokenizer.json: what is done to a text before it is cut.
#include "data/codecs/text/pipeline.h"
#include "data/codecs/text/unicode.h"

namespace millrace::data {
namespace {

/// Characters that `keep` is false for go.
template <typename Keep>
void filter(std::string& text, const Keep& keep) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (keep(next_character(text, at))) result.append(text, begin, at - begin);
  }
  text = std::move(result);
}

bool is_chinese(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) ||
         (c >= 0x2f800 && c <= 0x2fa1f);
}

/// BERT's cleaning: no control characters, white space becomes blanks.
void clean(std::string& text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t c = next_character(text, at);
    const bool break_or_tab = c == '\t' || c == '\n' || c == '\r';
    if (c == 0 || c == 0xfffd || (!break_or_tab && is_control(c))) continue;
    if (break_or_tab || is_space(c))
      result += ' ';
    else
      result.append(text, begin, at - begin);
  }
  text = std::move(result);
}

void set_apart_chinese(std::string& text) {
  if (ascii(text)) return;
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const bool chinese = is_chinese(next_character(text, at));
    if (chinese) result += ' ';
    result.append(text, begin, at - begin);
    if (chinese) result += ' ';
  }
  text = std::move(result);
}

Normalizer bert(const Json& json) {
  const bool cleans = json.flag("clean_text", true), chinese = json.flag("handle_chinese_chars", true),
             lower = json.flag("lowercase", true), accents = json.flag("strip_accents", lower);
  return [=](std::string& text) {
    if (cleans) clean(text);
    if (chinese) set_apart_chinese(text);
    if (accents && !ascii(text)) {
      text = normal_form(text, Form::nfd);
      filter(text, [](char32_t c) { return !is_nonspacing(c); });
    }
    if (lower) text = lower_case(text);
  };
}

Normalizer strip(const Json& json) {
  const bool left = json.flag("strip_left", true), right = json.flag("strip_right", true);
  return [=](std::string& text) {
    size_t begin = 0, end = text.size();
    for (size_t at = 0; left && at < text.size() && is_space(next_character(text, at));) begin = at;
    for (size_t at = end; right && at > begin && is_space(previous_character(text, at));) end = at;
    text = text.substr(begin, end - begin);
  };
}

Normalizer replace(const Json& json) {
  return [pattern = make_pattern(json.at("pattern")), content = json.text("content"),
          where = json.where](std::string& text) {
    std::vector<std::pair<size_t, size_t>> matches;
    pattern(text, matches);
    if (matches.empty()) return;
    check_growth(where, text.size(), text.size() + matches.size() * content.size());
    std::string result;
    size_t at = 0;
    for (const auto& [begin, end] : matches) {
      result.append(text, at, begin - at);
      result += content;
      at = end;
    }
    text = result.append(text, at);
  };
}

void to_byte_characters(std::string& text) {
  std::string result;
  for (const char c : text) result += byte_character(static_cast<uint8_t>(c));
  text = std::move(result);
}

Normalizer form(Form which) {
  return [which](std::string& text) { text = normal_form(text, which); };
}

}  // namespace

Normalizer make_normalizer(const Json& json, int depth) {
  const std::string type = json.type();
  if (depth > kDeepest) json.unsupported("such a deep nesting of Sequences");
  if (type == "Sequence") return sequence(json.at("normalizers"), json.where, depth, make_normalizer);
  if (type == "NFC") return form(Form::nfc);
  if (type == "NFD") return form(Form::nfd);
  if (type == "NFKC") return form(Form::nfkc);
  if (type == "NFKD") return form(Form::nfkd);
  if (type == "Lowercase") return [](std::string& text) { text = lower_case(text); };
  if (type == "StripAccents")
    return [](std::string& text) { filter(text, [](char32_t c) { return c < 0x80 || !is_mark(c); }); };
  if (type == "BertNormalizer") return bert(json);
  if (type == "Strip") return strip(json);
  if (type == "Replace") return replace(json);
  if (type == "Prepend")
    return [prefix = json.text("prepend")](std::string& text) {
      if (!text.empty()) text.insert(0, prefix);
    };
  if (type == "ByteLevel") return to_byte_characters;
  json.unsupported(fmt::format("the normalizer '{}'", type));
}

}  // namespace millrace::data

// Decoders of tokenizer.json: from tokens back to text.
#include <charconv>

#include "base/utf8.h"
#include "data/codecs/text/pipeline.h"
#include "data/codecs/text/unicode.h"

namespace millrace::data {
namespace {

using Tokens = std::vector<std::string>;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  std::string result;
  size_t at = 0;
  for (size_t found = 0; (found = text.find(from, at)) != std::string::npos; at = found + from.size()) {
    result.append(text, at, found - at);
    result += to;
  }
  if (at > 0) text = result.append(text, at);
}

void join(Tokens& tokens) {
  std::string whole;
  for (const std::string& token : tokens) whole += token;
  tokens = {whole};
}

void from_byte_characters(Tokens& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    std::string own;
    bool known = true;
    for (size_t at = 0; known && at < token.size();) {
      const int byte = byte_of_character(next_character(token, at));
      known = byte >= 0;
      own += static_cast<char>(byte);
    }
    bytes += known ? own : token;
  }
  tokens.assign(1, make_well_formed(bytes));
}

/// What stands before punctuation, and the blank within "do n't".
void clean_up(std::string& text) {
  static constexpr std::pair<const char*, const char*> changes[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : changes) replace_all(text, from, to);
}

Decoder wordpiece(const Json& json) {
  return [prefix = json.text("prefix", "##"), cleans = json.flag("cleanup", true)](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) {
        if (tokens[i].starts_with(prefix))
          tokens[i].erase(0, prefix.size());
        else
          tokens[i].insert(tokens[i].begin(), ' ');
      }
      if (cleans) clean_up(tokens[i]);
    }
  };
}

Decoder metaspace(const Json& json) {
  const std::string replacement = json.text("replacement");
  const bool prepended =
      json.text("prepend_scheme", json.flag("add_prefix_space", true) ? "always" : "never") != "never";
  return [=](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], replacement, i == 0 && prepended ? "" : " ");
  };
}

Decoder word_ends(const Json& json) {
  return [suffix = json.text("suffix", "</w>")](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
  };
}

/// The byte of "<0xAB>", or -1.
int byte_token(const std::string& token) {
  unsigned byte = 0;
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  return error == std::errc() && end == token.data() + 5 ? static_cast<int>(byte) : -1;
}

void join_bytes(Tokens& tokens) {
  Tokens result;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (is_utf8(bytes))
      result.push_back(bytes);
    else
      result.insert(result.end(), bytes.size(), "\xef\xbf\xbd");
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = byte_token(token); byte >= 0) {
      bytes += static_cast<char>(byte);
      continue;
    }
    flush();
    result.push_back(std::move(token));
  }
  flush();
  tokens = std::move(result);
}

Decoder strip_tokens(const Json& json) {
  const std::string content = json.text("content");
  const int64_t start = json.at("start").integer(0, 1 << 20), stop = json.at("stop").integer(0, 1 << 20);
  if (content.empty()) fail<InputError>("{}: 'content' is empty", json.where);
  return [=](Tokens& tokens) {
    for (std::string& token : tokens) {
      size_t begin = 0, end = token.size();
      for (int64_t i = 0; i < start && std::string_view(token).substr(begin).starts_with(content); ++i)
        begin += content.size();
      for (int64_t i = 0; i < stop && std::string_view(token).substr(begin, end - begin).ends_with(content);
           ++i)
        end -= content.size();
      token = token.substr(begin, end - begin);
    }
  };
}

}  // namespace

Decoder make_decoder(const Json& json, int depth) {
  const std::string type = json.type();
  if (depth > kDeepest) json.unsupported("such a deep nesting of Sequences");
  if (type == "Sequence") return sequence(json.at("decoders"), json.where, depth, make_decoder);
  if (type == "ByteLevel") return from_byte_characters;
  if (type == "WordPiece") return wordpiece(json);
  if (type == "Metaspace") return metaspace(json);
  if (type == "BPEDecoder") return word_ends(json);
  if (type == "ByteFallback") return join_bytes;
  if (type == "Fuse") return join;
  if (type == "Strip") return strip_tokens(json);
  if (type == "Replace")
    return [replace = make_normalizer(json)](Tokens& tokens) {
      for (std::string& token : tokens) replace(token);
    };
  json.unsupported(fmt::format("the decoder '{}'", type));
}

}  // namespace millrace::data

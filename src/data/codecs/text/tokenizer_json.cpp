// Hugging Face's tokenizer.json: the parts of pipeline.h one after the other.
#include <algorithm>
#include <set>

#include "base/crc32c.h"
#include "base/format.h"
#include "base/utf8.h"
#include "base/words.h"
#include "data/codecs/text/added_tokens.h"
#include "data/codecs/text/pipeline.h"
#include "data/codecs/text/tokenizer.h"
#include "data/codecs/text/unicode.h"

namespace millrace::data {
namespace {

constexpr size_t kLongestToken = 1024;  // bytes of an added token

/// What is put around the ids of a text.
struct Frame {
  std::vector<int32_t> before, behind;
  bool left_out = false;  // a template without the text itself
};

struct Truncation {
  int64_t longest = 0;  // ids, those of the frame included; 0: any
  bool keeps_end = false;
};

struct Parts {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<TokenModel> model;
  Decoder decoder;
  std::vector<AddedToken> added;
  Frame frame;
  Truncation truncation;
};

class PipelineTokenizer : public Tokenizer {
 public:
  PipelineTokenizer(Parts parts, uint32_t digest) : parts_(std::move(parts)), digest_(digest) {
    for (const auto& [token, id] : parts_.model->vocabulary()) put(token, id);
    for (const AddedToken& token : parts_.added) {
      ids_.insert_or_assign(token.content, token.id);
      if (token.special) special_.insert(token.id);
      std::string pattern = token.content;
      if (token.normalized && parts_.normalizer) parts_.normalizer(pattern);
      put(pattern, token.id);  // decoding gives what the normaliser made of it
      (token.normalized ? later_ : first_).add(token, pattern);
    }
  }

  std::string description() const override { return parts_.model->name(); }
  int64_t size() const override { return static_cast<int64_t>(tokens_.size()); }
  uint32_t digest() const override { return digest_; }

  void encode(std::string_view text, bool special, std::vector<int32_t>& ids) const override {
    if (!is_utf8(text)) {
      encode(make_well_formed(text), special, ids);
      return;
    }
    if (special) ids.insert(ids.end(), parts_.frame.before.begin(), parts_.frame.before.end());
    const size_t begin = ids.size();
    if (!special || !parts_.frame.left_out)
      first_.cut(text, [&](size_t from, size_t to, const AddedToken* token) {
        if (token)
          ids.push_back(token->id);
        else
          encode_part(std::string(text.substr(from, to - from)), from == 0, ids);
      });
    if (!special) return;
    truncate(ids, begin);
    ids.insert(ids.end(), parts_.frame.behind.begin(), parts_.frame.behind.end());
  }

  std::string decode(std::span<const int32_t> ids, bool skip_special) const override {
    std::vector<std::string> tokens;
    for (const int32_t id : ids) {
      std::string text = token(id);
      if (text.empty() || (skip_special && special_.contains(id))) continue;
      tokens.push_back(std::move(text));
    }
    if (!parts_.decoder) return fmt::format("{}", fmt::join(tokens, " "));
    parts_.decoder(tokens);
    return fmt::format("{}", fmt::join(tokens, ""));
  }

  std::string token(int32_t id) const override {
    return id >= 0 && static_cast<size_t>(id) < tokens_.size() ? tokens_[static_cast<size_t>(id)]
                                                               : std::string();
  }

  std::optional<int32_t> id(std::string_view token) const override {
    if (const auto found = ids_.find(token); found != ids_.end()) return found->second;
    const auto found = parts_.model->vocabulary().find(token);
    if (found == parts_.model->vocabulary().end()) return std::nullopt;
    return found->second;
  }

 private:
  void put(const std::string& token, int32_t id) {
    if (static_cast<size_t>(id) >= tokens_.size()) tokens_.resize(static_cast<size_t>(id) + 1);
    tokens_[static_cast<size_t>(id)] = token;
  }

  /// What no token of the first kind stands in. `first`: it begins the text.
  void encode_part(std::string text, bool first, std::vector<int32_t>& ids) const {
    if (parts_.normalizer) parts_.normalizer(text);
    later_.cut(text, [&](size_t from, size_t to, const AddedToken* token) {
      if (token) {
        ids.push_back(token->id);
        return;
      }
      std::vector<Word> words;
      words.push_back({text.substr(from, to - from), first && from == 0});
      if (parts_.pre_tokenizer) parts_.pre_tokenizer(words);
      for (const Word& word : words) parts_.model->encode(word.text, ids);
    });
  }

  /// Keeps of the ids from `begin` on what the longest length leaves room for.
  void truncate(std::vector<int32_t>& ids, size_t begin) const {
    if (parts_.truncation.longest == 0) return;
    const auto room = static_cast<size_t>(parts_.truncation.longest) - parts_.frame.before.size() -
                      parts_.frame.behind.size();
    if (ids.size() - begin <= room) return;
    if (parts_.truncation.keeps_end)
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                ids.end() - static_cast<std::ptrdiff_t>(room));
    else
      ids.resize(begin + room);
  }

  Parts parts_;
  uint32_t digest_;
  std::vector<std::string> tokens_;  // by id; empty where there is none
  Vocabulary ids_;                   // of added tokens
  std::set<int32_t> special_;
  TokenFinder first_, later_;
};

std::unique_ptr<TokenModel> make_model(const Json& json) {
  // Old files have no type: what has merges is BPE.
  const std::string type = json.text("type", json.has("merges") ? "BPE" : "WordPiece");
  if (type == "BPE") return make_bpe(json);
  if (type == "WordPiece") return make_wordpiece(json);
  json.unsupported(fmt::format("the model '{}'", type));
}

std::vector<AddedToken> read_added(const Json& list, const Vocabulary& vocabulary) {
  std::vector<AddedToken> added;
  auto next = static_cast<int32_t>(vocabulary.size());
  for (size_t i = 0; i < list.items(); ++i) {
    const Json item = list.item(i);
    AddedToken token;
    token.content = item.text("content");
    token.special = item.flag("special", false);
    token.normalized = item.flag("normalized", !token.special);
    token.single_word = item.flag("single_word", false);
    token.left = item.flag("lstrip", false);
    token.right = item.flag("rstrip", false);
    if (token.content.size() > kLongestToken)
      fail<InputError>("{}: a token of {} bytes; at most {} are supported", item.where, token.content.size(),
                       kLongestToken);
    if (token.content.empty()) continue;
    // The file's own "id" means nothing: the vocabulary's is taken, or the next one.
    const auto known = vocabulary.find(token.content);
    token.id = known != vocabulary.end() ? known->second : next;
    next = std::max(next, token.id + 1);
    added.push_back(std::move(token));
  }
  return added;
}

int32_t id_of(const Json& json, const Parts& parts) {
  const auto id = static_cast<int32_t>(json.integer(0, INT32_MAX));
  const auto known = [&](const auto& entries, const auto& number) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const auto& entry) { return number(entry) == id; });
  };
  if (!known(parts.added, [](const AddedToken& token) { return token.id; }) &&
      !known(parts.model->vocabulary(), [](const auto& entry) { return entry.second; }))
    fail<InputError>("{}: no token has the id {}", json.where, id);
  return id;
}

/// TemplateProcessing's "single": special tokens around the one text.
void read_template(const Json& json, const Parts& parts, Frame& frame) {
  const Json list = json.at("single");
  std::vector<int32_t> before, behind;
  bool text = false;
  for (size_t i = 0; i < list.items(); ++i) {
    const Json item = list.item(i);
    if (item.has("Sequence")) {
      if (text || item.at("Sequence").text("id") != "A")
        item.unsupported("a single text that is not A, once,");
      text = true;
      continue;
    }
    const Json token = json.at("special_tokens").at(item.at("SpecialToken").text("id").c_str()),
               ids = token.at("ids");
    if (list.items() * ids.items() > 4096) json.unsupported("a template of more than 4,096 tokens");
    for (size_t k = 0; k < ids.items(); ++k) (text ? behind : before).push_back(id_of(ids.item(k), parts));
  }
  if (!text) {
    frame.left_out = true;
    behind = std::move(before);
    before.clear();
  }
  frame.before.insert(frame.before.begin(), before.begin(), before.end());
  frame.behind.insert(frame.behind.end(), behind.begin(), behind.end());
}

void read_frame(const Json& json, const Parts& parts, Frame& frame, int depth = 0) {
  const std::string type = json.type();
  if (depth > kDeepest) json.unsupported("such a deep nesting of Sequences");
  if (type == "ByteLevel") return;  // changes offsets only
  if (type == "TemplateProcessing") return read_template(json, parts, frame);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    for (const char* key : {"cls", "sep"})
      if (json.at(key).items() != 2) fail<InputError>("{}: must be a token and its id", json.at(key).where);
    frame.before.insert(frame.before.begin(), id_of(json.at("cls").item(1), parts));
    frame.behind.push_back(id_of(json.at("sep").item(1), parts));
    return;
  }
  if (type != "Sequence") json.unsupported(fmt::format("the post-processor '{}'", type));
  const Json list = json.at("processors");
  for (size_t i = 0; i < list.items(); ++i) read_frame(list.item(i), parts, frame, depth + 1);
}

Truncation read_truncation(const Json& json, const Frame& frame) {
  Truncation truncation;
  const auto least = static_cast<int64_t>(frame.before.size() + frame.behind.size());
  truncation.longest = json.at("max_length").integer(std::max<int64_t>(1, least), INT32_MAX);
  const std::string direction = json.text("direction", "Right");
  if (direction != "Right" && direction != "Left")
    json.unsupported(fmt::format("the direction '{}'", direction));
  truncation.keeps_end = direction == "Left";
  if (json.text("strategy", "LongestFirst") == "OnlySecond") json.unsupported("the strategy 'OnlySecond'");
  return truncation;
}

}  // namespace

std::shared_ptr<const Tokenizer> parse_tokenizer_json(std::string_view text, const std::string& name) {
  nlohmann::json content;
  try {
    content = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    fail<InputError>("{}: is no JSON: {}", name, error.what());
  }
  const Json json{content, name};
  Parts parts;
  parts.model = make_model(json.at("model"));
  if (json.has("normalizer")) parts.normalizer = make_normalizer(json.at("normalizer"));
  if (json.has("pre_tokenizer")) parts.pre_tokenizer = make_pre_tokenizer(json.at("pre_tokenizer"));
  if (json.has("decoder")) parts.decoder = make_decoder(json.at("decoder"));
  if (json.has("added_tokens")) parts.added = read_added(json.at("added_tokens"), parts.model->vocabulary());
  if (json.has("post_processor")) read_frame(json.at("post_processor"), parts, parts.frame);
  if (json.has("truncation")) parts.truncation = read_truncation(json.at("truncation"), parts.frame);
  if (parts.model->vocabulary().empty() && parts.added.empty())
    fail<InputError>("{}: the vocabulary is empty", name);
  return std::make_shared<PipelineTokenizer>(std::move(parts), crc32c(text.data(), text.size()) | 1);
}

std::shared_ptr<const Tokenizer> parse_vocabulary(std::string_view lines, const std::string& name) {
  Vocabulary vocabulary;
  bool capitals = false;
  for (const std::string& token : lines_in(lines)) {
    if (!token.starts_with('['))
      capitals =
          capitals || std::any_of(token.begin(), token.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (!vocabulary.emplace(token, static_cast<int32_t>(vocabulary.size())).second)
      fail<InputError>("{}: line {} has '{}' again; a vocab.txt has a token a line, each once", name,
                       vocabulary.size() + 1, token);
  }
  for (const char* token : {"[UNK]", "[CLS]", "[SEP]"})
    if (!vocabulary.contains(std::string_view(token)))
      fail<InputError>("{}: is no vocabulary of WordPiece, which has a token a line: {} is missing", name,
                       token);
  Parts parts;
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
    if (const auto found = vocabulary.find(std::string_view(token)); found != vocabulary.end())
      parts.added.push_back({found->first, found->second, true, false});
  parts.frame = {{vocabulary.find(std::string_view("[CLS]"))->second},
                 {vocabulary.find(std::string_view("[SEP]"))->second}};
  const nlohmann::json bert{{"type", "BertNormalizer"}, {"lowercase", !capitals}},
      words{{"type", "BertPreTokenizer"}}, back{{"type", "WordPiece"}};
  parts.normalizer = make_normalizer({bert, name});
  parts.pre_tokenizer = make_pre_tokenizer({words, name});
  parts.decoder = make_decoder({back, name});
  parts.model = make_wordpiece(std::move(vocabulary), "[UNK]");
  return std::make_shared<PipelineTokenizer>(std::move(parts), crc32c(lines.data(), lines.size()) | 1);
}

}  // namespace millrace::data

// Byte-pair encoding (Sennrich et al., arXiv 1508.07909): the pair of neighbours with the lowest rank is
// merged, the first of equals, until none is left.
#include <algorithm>
#include <array>
#include <mutex>
#include <queue>
#include <span>

#include "data/codecs/text/pipeline.h"
#include "data/codecs/text/unicode.h"

namespace millrace::data {
namespace {

struct Merge {
  int32_t rank = 0, id = 0;
};

uint64_t pair_of(int32_t a, int32_t b) {
  return uint64_t{static_cast<uint32_t>(a)} << 32 | static_cast<uint32_t>(b);
}

/// The ids of words that came before. Several of them, so that threads seldom wait for each other.
class WordCache {
 public:
  bool find(std::string_view word, std::vector<int32_t>& ids) {
    Shard& shard = shard_of(word);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.words.find(word);
    if (found == shard.words.end()) return false;
    ids.insert(ids.end(), found->second.begin(), found->second.end());
    return true;
  }
  void add(std::string_view word, std::span<const int32_t> ids) {
    constexpr size_t most = 2048;  // words of a shard
    Shard& shard = shard_of(word);
    const std::lock_guard lock(shard.mutex);
    if (shard.words.size() >= most) shard.words.clear();
    shard.words.try_emplace(std::string(word), ids.begin(), ids.end());
  }

 private:
  struct Shard {
    std::mutex mutex;
    TextMap<std::vector<int32_t>> words;
  };
  Shard& shard_of(std::string_view word) { return shards_[TextHash()(word) % shards_.size()]; }
  std::array<Shard, 32> shards_;
};

class Bpe : public TokenModel {
 public:
  explicit Bpe(const Json& json)
      : prefix_(json.text("continuing_subword_prefix", "")),
        suffix_(json.text("end_of_word_suffix", "")),
        fuse_unknown_(json.flag("fuse_unk", false)),
        byte_fallback_(json.flag("byte_fallback", false)),
        ignore_merges_(json.flag("ignore_merges", false)) {
    if (json.has("dropout") && json.at("dropout").value != 0)
      json.unsupported("dropout, with which a text has other tokens each time,");
    vocabulary_ = read_vocabulary(json);
    if (const std::string unknown = json.text("unk_token", ""); json.has("unk_token")) {
      const auto id = vocabulary_.find(unknown);
      if (id == vocabulary_.end())
        fail<InputError>("{}: the unk_token '{}' is not in the vocabulary", json.where, unknown);
      unknown_ = id->second;
    }
    read_merges(json.at("merges"));
    bytes_.fill(-1);
    for (int b = 0; byte_fallback_ && b < 256; ++b)
      if (const auto id = vocabulary_.find(fmt::format("<0x{:02X}>", b)); id != vocabulary_.end())
        bytes_[static_cast<size_t>(b)] = id->second;
  }

  const char* name() const override { return "BPE"; }

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    if (ignore_merges_)
      if (const auto whole = vocabulary_.find(word); whole != vocabulary_.end()) {
        ids.push_back(whole->second);
        return;
      }
    const bool cached = word.size() <= kLongestCached;
    if (cached && cache_.find(word, ids)) return;
    const size_t before = ids.size();
    std::vector<Symbol> symbols = symbols_of(word);
    merge(symbols);
    for (int64_t at = symbols.empty() ? -1 : 0; at >= 0; at = symbols[static_cast<size_t>(at)].next)
      ids.push_back(symbols[static_cast<size_t>(at)].id);
    if (cached) cache_.add(word, std::span(ids).subspan(before));
  }

 private:
  struct Symbol {
    int32_t id = 0;
    int64_t previous = -1, next = -1;  // places in the list
    bool gone = false;
  };

  void read_merges(const Json& list) {
    int32_t rank = 0;
    for (size_t i = 0; i < list.items(); ++i) {
      const Json item = list.item(i);
      std::string a, b;
      if (item.value.is_array() && item.value.size() == 2) {
        a = item.item(0).text();
        b = item.item(1).text();
      } else {
        const std::string text = item.text();
        if (text.starts_with("#version")) continue;
        const size_t blank = text.find(' ');
        if (blank == std::string::npos || text.find(' ', blank + 1) != std::string::npos)
          fail<InputError>("{}: '{}' must be two tokens with a blank between", item.where, text);
        a = text.substr(0, blank);
        b = text.substr(blank + 1);
      }
      const std::string whole = a + (b.starts_with(prefix_) ? b.substr(prefix_.size()) : b);
      const auto left = vocabulary_.find(a), right = vocabulary_.find(b), both = vocabulary_.find(whole);
      for (const auto& [found, token] : {std::pair{left, a}, {right, b}, {both, whole}})
        if (found == vocabulary_.end())
          fail<InputError>("{}: the token '{}' is not in the vocabulary", item.where, token);
      merges_[pair_of(left->second, right->second)] = {rank++, both->second};
    }
  }

  /// The characters of a word, or what stands for those that the vocabulary does not have.
  std::vector<Symbol> symbols_of(std::string_view word) const {
    std::vector<Symbol> symbols;
    const auto add = [&](int32_t id) {
      const auto at = static_cast<int64_t>(symbols.size());
      symbols.push_back({id, at - 1, at + 1});
    };
    bool unknown = false;  // one that has not been added yet
    std::string decorated;
    for (size_t at = 0, end = 0; at < word.size(); at = end) {
      end = std::min(at + utf8_size(word[at]), word.size());
      std::string_view character = word.substr(at, end - at);
      if ((at > 0 && !prefix_.empty()) || (end == word.size() && !suffix_.empty())) {
        decorated =
            fmt::format("{}{}{}", at > 0 ? prefix_ : "", character, end == word.size() ? suffix_ : "");
        character = decorated;
      }
      if (const auto found = vocabulary_.find(character); found != vocabulary_.end()) {
        if (std::exchange(unknown, false)) add(unknown_);
        add(found->second);
        continue;
      }
      if (byte_fallback_ && std::all_of(character.begin(), character.end(),
                                        [&](char c) { return bytes_[static_cast<uint8_t>(c)] >= 0; })) {
        for (const char c : character) add(bytes_[static_cast<uint8_t>(c)]);
        continue;
      }
      if (unknown_ < 0) continue;  // left out
      if (unknown && !fuse_unknown_) add(unknown_);
      unknown = true;
    }
    if (unknown) add(unknown_);
    if (!symbols.empty()) symbols.back().next = -1;
    return symbols;
  }

  void merge(std::vector<Symbol>& symbols) const {
    struct Step {
      int32_t rank, id;
      int64_t at;
      bool operator>(const Step& other) const {
        return rank != other.rank ? rank > other.rank : at > other.at;
      }
    };
    std::priority_queue<Step, std::vector<Step>, std::greater<>> steps;
    const auto symbol = [&](int64_t at) -> Symbol& { return symbols[static_cast<size_t>(at)]; };
    const auto consider = [&](int64_t at) {
      if (at < 0 || symbol(at).next < 0) return;
      const auto found = merges_.find(pair_of(symbol(at).id, symbol(symbol(at).next).id));
      if (found != merges_.end()) steps.push({found->second.rank, found->second.id, at});
    };
    for (size_t i = 0; i + 1 < symbols.size(); ++i) consider(static_cast<int64_t>(i));
    while (!steps.empty()) {
      const Step step = steps.top();
      steps.pop();
      Symbol& left = symbol(step.at);
      if (left.gone || left.next < 0) continue;
      Symbol& right = symbol(left.next);
      const auto found = merges_.find(pair_of(left.id, right.id));
      if (found == merges_.end() || found->second.id != step.id) continue;  // one of them was merged before
      left.id = step.id;
      right.gone = true;
      left.next = right.next;
      if (left.next >= 0) symbol(left.next).previous = step.at;
      consider(left.previous);
      consider(step.at);
    }
  }

  std::string prefix_, suffix_;
  bool fuse_unknown_, byte_fallback_, ignore_merges_;
  int32_t unknown_ = -1;
  std::array<int32_t, 256> bytes_{};
  std::unordered_map<uint64_t, Merge> merges_;
  mutable WordCache cache_;
};

}  // namespace

std::unique_ptr<TokenModel> make_bpe(const Json& json) { return std::make_unique<Bpe>(json); }

}  // namespace millrace::data

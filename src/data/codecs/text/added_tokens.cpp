#include "data/codecs/text/added_tokens.h"

#include <algorithm>

#include "data/codecs/text/unicode.h"

namespace millrace::data {

namespace {

uint64_t edge(uint64_t node, char byte) { return node << 8 | static_cast<uint8_t>(byte); }

}  // namespace

void TokenFinder::add(const AddedToken& token, const std::string& pattern) {
  if (pattern.empty()) return;
  begins_[static_cast<uint8_t>(pattern[0])] = true;
  uint32_t node = 0;
  for (const char byte : pattern) {
    const auto [found, fresh] = next_.try_emplace(edge(node, byte), static_cast<uint32_t>(ends_.size()));
    if (fresh) ends_.emplace_back();
    node = found->second;
  }
  if (!ends_[node]) ends_[node] = token;
}

const AddedToken* TokenFinder::at(std::string_view text, size_t place, size_t& end) const {
  if (!begins_[static_cast<uint8_t>(text[place])]) return nullptr;
  const AddedToken* longest = nullptr;
  uint32_t node = 0;
  for (size_t at = place; at < text.size(); ++at) {
    const auto found = next_.find(edge(node, text[at]));
    if (found == next_.end()) break;
    node = found->second;
    if (!ends_[node]) continue;
    longest = &*ends_[node];
    end = at + 1;
  }
  return longest;
}

void TokenFinder::cut(std::string_view text,
                      const std::function<void(size_t, size_t, const AddedToken*)>& piece) const {
  size_t done = 0;
  for (size_t place = 0; place < text.size();) {
    size_t begin = place, end = place;
    const AddedToken* const token = at(text, place, end);
    if (!token) {
      ++place;
      continue;
    }
    place = end;
    if (token->single_word) {
      size_t before = begin, behind = end;
      if (begin > 0 && is_word(previous_character(text, before))) continue;
      if (end < text.size() && is_word(next_character(text, behind))) continue;
    }
    for (size_t to = begin; token->left && to > done && is_space(previous_character(text, to));) begin = to;
    begin = std::max(begin, done);
    for (size_t to = end; token->right && to < text.size() && is_space(next_character(text, to));) end = to;
    if (begin > done) piece(done, begin, nullptr);
    piece(begin, end, token);
    done = end;
    // What follows may overlap the white space that was taken along; that is no place for another token.
    place = std::max(place, done);
  }
  if (done < text.size()) piece(done, text.size(), nullptr);
}

}  // namespace millrace::data

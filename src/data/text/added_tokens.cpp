#include "data/text/added_tokens.h"

#include <algorithm>

#include "data/text/unicode.h"

namespace millrace::data {

void TokenFinder::add(const AddedToken& token, std::string pattern) {
  if (pattern.empty()) return;
  auto& lengths = lengths_[static_cast<uint8_t>(pattern[0])];
  if (std::find(lengths.begin(), lengths.end(), pattern.size()) == lengths.end()) {
    lengths.push_back(pattern.size());
    std::sort(lengths.begin(), lengths.end(), std::greater<>());
  }
  patterns_.try_emplace(std::move(pattern), token);
}

const AddedToken* TokenFinder::at(std::string_view text, size_t place, size_t& end) const {
  for (const size_t length : lengths_[static_cast<uint8_t>(text[place])]) {
    if (place + length > text.size()) continue;
    const auto found = patterns_.find(text.substr(place, length));
    if (found == patterns_.end()) continue;
    end = place + length;
    return &found->second;
  }
  return nullptr;
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

// Tokens that are found in a text before anything else happens to it: "[MASK]", "<|endoftext|>".
#pragma once

#include <functional>

#include "data/text/pipeline.h"

namespace millrace::data {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool normalized = true;            // looked for after the normaliser, as it makes of `content`
  bool single_word = false;          // only between characters that are no word's
  bool left = false, right = false;  // with the white space before, behind it
};

/// Finds tokens from left to right, the longest at each place, in time linear in the text.
class TokenFinder {
 public:
  /// `pattern`: what a token looks like.
  void add(const AddedToken& token, std::string pattern);
  bool empty() const { return patterns_.empty(); }
  /// Calls `piece(begin, end, token)` for all of `text`, in order; `token` is null between tokens.
  void cut(std::string_view text, const std::function<void(size_t, size_t, const AddedToken*)>& piece) const;

 private:
  /// The longest pattern at a place, or null.
  const AddedToken* at(std::string_view text, size_t place, size_t& end) const;

  TextMap<AddedToken> patterns_;
  /// Lengths of the patterns that begin with a byte, longest first.
  std::vector<size_t> lengths_[256];
};

}  // namespace millrace::data

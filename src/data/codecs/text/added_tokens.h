// Tokens that are found in a text before anything else happens to it: "[MASK]", "<|endoftext|>".
#pragma once

#include <functional>

#include "data/codecs/text/pipeline.h"

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
  void add(const AddedToken& token, const std::string& pattern);
  /// Calls `piece(begin, end, token)` for all of `text`, in order; `token` is null between tokens.
  void cut(std::string_view text, const std::function<void(size_t, size_t, const AddedToken*)>& piece) const;

 private:
  /// The longest pattern at a place, or null.
  const AddedToken* at(std::string_view text, size_t place, size_t& end) const;

  /// A tree of bytes: from a node (0: the root) and a byte to the next, and the token that ends at a node.
  std::unordered_map<uint64_t, uint32_t> next_;
  std::vector<std::optional<AddedToken>> ends_{1};
  bool begins_[256] = {};  // some pattern, with this byte
};

}  // namespace millrace::data

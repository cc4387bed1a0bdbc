// Maps of texts that are asked by views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <xxhash.h>

namespace millrace {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return XXH3_64bits(text.data(), text.size()); }
};
template <typename T>
using TextMap = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

/// One more of a text.
inline void count_text(std::string_view text, TextMap<int64_t>& times) {
  if (const auto at = times.find(text); at != times.end())
    ++at->second;
  else
    times.emplace(text, 1);
}

}  // namespace millrace

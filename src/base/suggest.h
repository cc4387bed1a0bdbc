// The nearest name to a mistyped one, for error messages.
#pragma once

#include <algorithm>
#include <cctype>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Edit distance between two words, capital letters counted as small: insertions, deletions, substitutions
/// and swaps of neighbours cost one each (optimal string alignment).
inline int edit_distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

/// Is the word the candidate with letters left out, and nothing else wrong?
inline bool lacks_letters(std::string_view word, std::string_view candidate) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  size_t at = 0;
  for (const char c : candidate) at += at < word.size() && lower(word[at]) == lower(c);
  return at == word.size();
}

/// The candidate with the smallest edit distance to `word`; of equals the first that it lacks letters of
/// ("columns" for "colums", rather than "column"), else the first. The beginning of a word, as "acc" of
/// "accuracy", counts as one edit. "" when there is no candidate.
inline std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  const std::string* best = nullptr;
  int best_distance = 0;
  for (const std::string& candidate : candidates) {
    const bool beginning = word.size() >= 3 && candidate.starts_with(word) && candidate != word;
    const int distance = beginning ? 1 : edit_distance(word, candidate);
    const bool closer =
        !best || distance < best_distance ||
        (distance == best_distance && lacks_letters(word, candidate) && !lacks_letters(word, *best));
    if (!closer) continue;
    best = &candidate;
    best_distance = distance;
  }
  return best ? *best : std::string();
}

/// Could one be meant by the other? A third of the letters may be wrong, not counting a dotted beginning that
/// both have ("train." of keys).
inline bool is_near(std::string_view word, std::string_view candidate) {
  const auto same = std::mismatch(word.begin(), word.end(), candidate.begin(), candidate.end());
  const size_t dot = word.substr(0, static_cast<size_t>(same.first - word.begin())).rfind('.');
  if (dot != std::string_view::npos) {
    word.remove_prefix(dot + 1);
    candidate.remove_prefix(dot + 1);
  }
  if (word.size() >= 3 && candidate.starts_with(word)) return true;
  return edit_distance(word, candidate) <=
         static_cast<int>((std::max(word.size(), candidate.size()) + 1) / 3);
}

/// nearest(), but "" where that is far from the word: no guess is better than a wrong one.
inline std::string near(std::string_view word, std::span<const std::string> candidates) {
  std::string best = nearest(word, candidates);
  return is_near(word, best) ? best : std::string();
}

/// "; did you mean 'flip'?"; `otherwise` where nothing is near. The end of a message that has said what is
/// wrong.
inline std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                                std::string_view otherwise = "", char quote = '\'') {
  const std::string best = near(word, candidates);
  if (best.empty()) return std::string(otherwise);
  return std::string("; did you mean ").append(1, quote).append(best).append(1, quote).append("?");
}

/// The same; all candidates where nothing is near: "; there are: flip, rotate".
inline std::string did_you_mean_or_list(std::string_view word, std::span<const std::string> candidates) {
  std::string list;
  for (const std::string& candidate : candidates) list += (list.empty() ? "; there are: " : ", ") + candidate;
  return did_you_mean(word, candidates, list);
}

}  // namespace millrace

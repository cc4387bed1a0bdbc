#include "eval/text_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/format.h"

namespace millrace::eval {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
bool ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    while (at < text.size() && ascii_space(text[at])) ++at;
    const size_t begin = at;
    while (at < text.size() && !ascii_space(text[at])) ++at;
    if (at > begin) words.emplace_back(text.substr(begin, at - begin));
  }
  return words;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

/// Puts spaces around each pair of neighbours that `matches`: what a regular expression of two characters
/// does, from the left, no character in two pairs.
template <typename Matches>
std::string part_pairs(const std::string& text, const char* format, const Matches& matches) {
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !matches(text[i], text[i + 1])) {
      made += text[i];
      continue;
    }
    for (const char* f = format; *f; ++f) made += *f == '1' ? text[i] : *f == '2' ? text[i + 1] : ' ';
    ++i;
  }
  return made;
}

/// Bytes that are no UTF-8 are characters of their own.
std::u32string characters(std::string_view text) {
  std::u32string made;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t size = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t code = lead;
    if (size > 1) {
      code = lead & (0xFFU >> (size + 1));
      for (size_t k = 1; k < size && i + k < text.size(); ++k)
        code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3F);
    }
    made += code;
    i += size;
  }
  return made;
}

bool space_character(char32_t c) {
  return c == ' ' || (c >= 0x9 && c <= 0xD) || (c >= 0x1C && c <= 0x1F) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

std::u32string without_spaces(std::string_view text) {
  std::u32string made = characters(text);
  std::erase_if(made, space_character);
  return made;
}

/// How often each run of n neighbours occurs. List: of words, or characters.
template <typename List>
std::map<List, int64_t> grams(const List& list, size_t n) {
  std::map<List, int64_t> counts;
  for (size_t i = 0; i + n <= list.size(); ++i)
    ++counts[List(list.begin() + static_cast<std::ptrdiff_t>(i),
                  list.begin() + static_cast<std::ptrdiff_t>(i + n))];
  return counts;
}

template <typename Counts>
int64_t in_common(const Counts& one, const Counts& other) {
  int64_t count = 0;
  for (const auto& [gram, times] : one)
    if (const auto found = other.find(gram); found != other.end()) count += std::min(times, found->second);
  return count;
}

/// Fewest insertions, deletions and changes.
template <typename List>
int64_t distance(const List& from, const List& to) {
  std::vector<int64_t> row(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (const auto& each : from) {
    int64_t before = row[0]++;  // of the row above, one to the left
    for (size_t j = 1; j <= to.size(); ++j) {
      const int64_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, before + (each == to[j - 1] ? 0 : 1)});
      before = above;
    }
  }
  return row.back();
}

int64_t longest_common(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  std::vector<int64_t> row(other.size() + 1);
  for (const std::string& each : one) {
    int64_t before = 0;
    for (size_t j = 1; j <= other.size(); ++j) {
      const int64_t above = row[j];
      row[j] = each == other[j - 1] ? before + 1 : std::max(above, row[j - 1]);
      before = above;
    }
  }
  return row.back();
}

std::vector<std::string> rouge_words(std::string_view text) {
  std::string plain;
  for (const char c : text)
    plain += c >= 'A' && c <= 'Z'                 ? static_cast<char>(c - 'A' + 'a')
             : digit(c) || (c >= 'a' && c <= 'z') ? c
                                                  : ' ';
  return split_words(plain);
}

double share(int64_t part, int64_t of) {
  return of > 0 ? static_cast<double>(part) / static_cast<double>(of) : 0;
}

}  // namespace

std::vector<std::string> Bleu::tokens(std::string_view text) {
  std::string line(text);
  replace_all(line, "<skipped>", "");
  replace_all(line, "-\n", "");
  replace_all(line, "\n", " ");
  replace_all(line, "&quot;", "\"");
  replace_all(line, "&amp;", "&");
  replace_all(line, "&lt;", "<");
  replace_all(line, "&gt;", ">");
  std::string parted = " ";
  for (const char c : line) {
    const bool mark = (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
                      (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
    if (mark)
      parted.append(1, ' ').append(1, c).append(1, ' ');
    else
      parted += c;
  }
  parted += ' ';
  const auto point = [](char c) { return c == '.' || c == ','; };
  parted = part_pairs(parted, "1 2 ", [&](char a, char b) { return !digit(a) && point(b); });
  parted = part_pairs(parted, " 1 2", [&](char a, char b) { return point(a) && !digit(b); });
  parted = part_pairs(parted, "1 2 ", [](char a, char b) { return digit(a) && b == '-'; });
  return split_words(parted);
}

void Bleu::add(std::string_view text, std::string_view reference) {
  const std::vector<std::string> own = tokens(text), wanted = tokens(reference);
  for (size_t n = 1; n <= orders; ++n) {
    right_[n - 1] += in_common(grams(own, n), grams(wanted, n));
    told_[n - 1] += std::max<int64_t>(std::ssize(own) - static_cast<int64_t>(n) + 1, 0);
  }
  length_ += std::ssize(own);
  reference_length_ += std::ssize(wanted);
  ++texts_;
}

void Bleu::merge(const Bleu& other) {
  for (size_t n = 0; n < orders; ++n) {
    right_[n] += other.right_[n];
    told_[n] += other.told_[n];
  }
  length_ += other.length_;
  reference_length_ += other.reference_length_;
  texts_ += other.texts_;
}

double Bleu::value() const {
  if (texts_ == 0) return std::numeric_limits<double>::quiet_NaN();
  if (std::all_of(right_.begin(), right_.end(), [](int64_t count) { return count == 0; })) return 0;
  double logs = 0, smoothing = 1;
  for (size_t n = 0; n < orders; ++n) {
    if (told_[n] == 0) return 0;
    if (right_[n] == 0) smoothing *= 2;
    logs +=
        std::log(right_[n] ? share(right_[n], told_[n]) : 1 / (smoothing * static_cast<double>(told_[n])));
  }
  const double brevity = length_ < reference_length_ ? 1 - share(reference_length_, length_) : 0;
  return 100 * std::exp(brevity + logs / static_cast<double>(orders));
}

void Chrf::add(std::string_view text, std::string_view reference) {
  const std::u32string own = without_spaces(text), wanted = without_spaces(reference);
  for (size_t n = 1; n <= orders; ++n) {
    const auto room = [&](const std::u32string& list) {
      return std::max<int64_t>(std::ssize(list) - static_cast<int64_t>(n) + 1, 0);
    };
    right_[n - 1] += in_common(grams(own, n), grams(wanted, n));
    wanted_[n - 1] += room(wanted);
    told_[n - 1] += room(wanted) > 0 ? room(own) : 0;
  }
  ++texts_;
}

void Chrf::merge(const Chrf& other) {
  for (size_t n = 0; n < orders; ++n) {
    right_[n] += other.right_[n];
    told_[n] += other.told_[n];
    wanted_[n] += other.wanted_[n];
  }
  texts_ += other.texts_;
}

double Chrf::value() const {
  if (texts_ == 0) return std::numeric_limits<double>::quiet_NaN();
  double precision = 0, recall = 0, known = 0;
  for (size_t n = 0; n < orders; ++n) {
    if (told_[n] == 0 || wanted_[n] == 0) continue;
    precision += share(right_[n], told_[n]);
    recall += share(right_[n], wanted_[n]);
    ++known;
  }
  if (precision + recall == 0) return 0;
  constexpr double weight = 4;  // of recall: its factor of 2, squared
  return 100 * (1 + weight) * precision * recall / known / (weight * precision + recall);
}

void Rouge::add(std::string_view text, std::string_view reference) {
  const std::vector<std::string> told = rouge_words(text), wanted = rouge_words(reference);
  const auto n = static_cast<size_t>(n_ == 0 ? 1 : n_);
  const int64_t right = n_ == 0 ? longest_common(told, wanted) : in_common(grams(told, n), grams(wanted, n));
  const auto room = [&](const auto& words) {
    return std::max<int64_t>(std::ssize(words) - static_cast<int64_t>(n) + 1, 0);
  };
  sum_.add(share(2 * right, room(told) + room(wanted)));
  ++texts_;
}

void Rouge::merge(const Rouge& other) {
  MILLRACE_CHECK(n_ == other.n_, "ROUGE of {} and of {} words", n_, other.n_);
  sum_.merge(other.sum_);
  texts_ += other.texts_;
}

double Rouge::value() const {
  return texts_ ? sum_.value() / static_cast<double>(texts_) : std::numeric_limits<double>::quiet_NaN();
}

void ErrorRate::add(std::string_view text, std::string_view reference) {
  if (words_) {
    const std::vector<std::string> wanted = split_words(reference);
    errors_ += distance(split_words(text), wanted);
    wanted_ += std::ssize(wanted);
    return;
  }
  const auto bare = [](std::string_view whole) {
    const std::u32string all = characters(whole);
    const auto first = std::find_if_not(all.begin(), all.end(), space_character);
    const auto last = std::find_if_not(all.rbegin(), all.rend(), space_character).base();
    return first < last ? std::u32string(first, last) : std::u32string();
  };
  const std::u32string wanted = bare(reference);
  errors_ += distance(bare(text), wanted);
  wanted_ += std::ssize(wanted);
}

void ErrorRate::merge(const ErrorRate& other) {
  MILLRACE_CHECK(words_ == other.words_, "error rates of words and of characters cannot be merged");
  errors_ += other.errors_;
  wanted_ += other.wanted_;
}

double ErrorRate::value() const {
  return wanted_ ? share(errors_, wanted_) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace millrace::eval

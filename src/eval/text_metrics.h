// How near generated texts are to references, with the values of the field's own programs. Each gathers pairs
// of texts, and merges like a Metric.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/exact_sum.h>

namespace millrace::eval {

/// BLEU of a corpus (Papineni et al., 2002), 0 … 100, as sacreBLEU has it: tokenizer 13a, case kept,
/// four-grams, orders without a match smoothed by halves.
class Bleu {
 public:
  void add(std::string_view text, std::string_view reference);
  void merge(const Bleu& other);
  double value() const;  // NaN without texts

  static std::vector<std::string> tokens(std::string_view text);  // 13a

 private:
  static constexpr size_t orders = 4;
  std::array<int64_t, orders> right_{}, told_{};
  int64_t length_ = 0, reference_length_ = 0, texts_ = 0;
};

/// chrF of a corpus (Popović, 2015), 0 … 100, as sacreBLEU has it: n-grams of up to six characters without
/// spaces, recall weighing twice.
class Chrf {
 public:
  void add(std::string_view text, std::string_view reference);
  void merge(const Chrf& other);
  double value() const;

 private:
  static constexpr size_t orders = 6;
  std::array<int64_t, orders> right_{}, told_{}, wanted_{};
  int64_t texts_ = 0;
};

/// ROUGE (Lin, 2004), 0 … 1: the mean over texts of the F1 of n-grams, or of the longest common subsequence
/// (L), as rouge-score has it without stemming: words of lower-case letters and digits.
class Rouge {
 public:
  static Rouge of_grams(int n) { return Rouge(n); }
  static Rouge of_subsequences() { return Rouge(0); }
  void add(std::string_view text, std::string_view reference);
  void merge(const Rouge& other);
  double value() const;

 private:
  explicit Rouge(int n) : n_(n) {}
  int n_;  // 0: L
  ExactSum sum_;
  int64_t texts_ = 0;
};

/// Words (WER) or characters (CER) put in, left out or changed, by those of the references, as jiwer has it:
/// case and punctuation count, spaces around a text do not, nor between words more than one.
class ErrorRate {
 public:
  static ErrorRate of_words() { return ErrorRate(true); }
  static ErrorRate of_characters() { return ErrorRate(false); }
  void add(std::string_view text, std::string_view reference);
  void merge(const ErrorRate& other);
  double value() const;  // NaN without references

 private:
  explicit ErrorRate(bool words) : words_(words) {}
  bool words_;
  int64_t errors_ = 0, wanted_ = 0;
};

}  // namespace millrace::eval

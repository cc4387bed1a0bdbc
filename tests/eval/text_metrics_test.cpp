// Values of sacrebleu 2.6.0 (corpus_bleu, corpus_chrf), rouge-score 0.1.2 and jiwer 4.0.0 with their
// defaults.
#include "eval/text_metrics.h"

#include <cmath>
#include <doctest/doctest.h>

using namespace millrace::eval;

namespace {

const std::vector<std::string> told = {
    "The cat sat on the mat.", "There is a dog, in the garden; it barks (loudly)!",
    "Prices rose 3.5% to $1,200 in 2019-2020.", "Größe zählt &quot;nicht&quot; viel"};
const std::vector<std::string> wanted = {
    "The cat is sitting on the mat.", "A dog is in the garden, and it barks loudly!",
    "Prices rose by 3.5% to $1,200 in 2019-2020.", "Die Größe zählt \"nicht\" so viel"};

template <typename Corpus>
double corpus(size_t first, size_t last) {
  Corpus all, rest;  // two parts, merged
  for (size_t i = first; i < last; ++i) (i % 2 ? all : rest).add(told[i], wanted[i]);
  all.merge(rest);
  return all.value();
}

template <typename Rate>
double pairs(Rate all, const std::vector<std::string>& texts, const std::vector<std::string>& references) {
  Rate rest = all;
  for (size_t i = 0; i < texts.size(); ++i) (i % 2 ? all : rest).add(texts[i], references[i]);
  all.merge(rest);
  return all.value();
}

template <typename Corpus>
double one(const std::string& text, const std::string& reference) {
  Corpus corpus;
  corpus.add(text, reference);
  return corpus.value();
}

std::string joined(std::string_view text) {
  std::string line;
  for (const std::string& token : Bleu::tokens(text)) line += (line.empty() ? "" : " ") + token;
  return line;
}

}  // namespace

TEST_CASE("BLEU is sacreBLEU's, its tokens those of 13a") {
  CHECK(joined(told[1]) == "There is a dog , in the garden ; it barks ( loudly ) !");
  CHECK(joined(told[2]) == "Prices rose 3.5 % to $ 1,200 in 2019 - 2020 .");
  CHECK(joined(told[3]) == "Größe zählt \" nicht \" viel");
  CHECK(joined("a.,b 1,000.5-7 x-y 'tis.") == "a . , b 1,000.5 - 7 x-y 'tis .");
  CHECK(joined("<skipped>a-\nb\nc &amp;lt;") == "ab c <");
  CHECK(corpus<Bleu>(0, 4) == doctest::Approx(51.45547295343104).epsilon(1e-12));
  const std::vector<double> each = {42.38365628278778, 14.628063653657538, 79.78973106703806,
                                    56.98363775444274};
  for (size_t i = 0; i < 4; ++i) CHECK(corpus<Bleu>(i, i + 1) == doctest::Approx(each[i]).epsilon(1e-12));
  // Smoothed twice and thrice; too short for four-grams; nothing in common.
  CHECK(one<Bleu>("the dog ran home now", "the cat sat at home") ==
        doctest::Approx(12.703318703865365).epsilon(1e-12));
  CHECK(one<Bleu>("the cat", "the cat sat") == 0);
  CHECK(one<Bleu>("zzz", "the cat") == 0);
  CHECK(std::isnan(Bleu().value()));
}

TEST_CASE("chrF is sacreBLEU's") {
  CHECK(corpus<Chrf>(0, 4) == doctest::Approx(61.67240638776318).epsilon(1e-12));
  CHECK(one<Chrf>("ab", "abc") == doctest::Approx(63.636363636363626).epsilon(1e-12));
  CHECK(one<Chrf>("a b", "ab\tc") == doctest::Approx(63.636363636363626).epsilon(1e-12));
  CHECK(one<Chrf>("x", "abc") == 0);
  CHECK(std::isnan(Chrf().value()));
}

TEST_CASE("ROUGE is rouge-score's F measure, the mean over texts") {
  CHECK(pairs(Rouge::of_grams(1), told, wanted) == doctest::Approx(0.8429029304029303).epsilon(1e-12));
  CHECK(pairs(Rouge::of_grams(2), told, wanted) == doctest::Approx(0.5929216981848561).epsilon(1e-12));
  CHECK(pairs(Rouge::of_subsequences(), told, wanted) == doctest::Approx(0.8179029304029304).epsilon(1e-12));
  CHECK(pairs(Rouge::of_grams(2), {"one"}, {"one"}) == 0);
  CHECK(pairs(Rouge::of_subsequences(), {"..."}, {"one"}) == 0);
  CHECK(std::isnan(Rouge::of_grams(1).value()));
}

TEST_CASE("error rates are jiwer's, and may be above 1") {
  CHECK(pairs(ErrorRate::of_words(), told, wanted) == doctest::Approx(0.41935483870967744).epsilon(1e-12));
  CHECK(pairs(ErrorRate::of_characters(), told, wanted) ==
        doctest::Approx(0.30405405405405406).epsilon(1e-12));
  CHECK(pairs(ErrorRate::of_words(), {" a x"}, {"a  b c "}) == doctest::Approx(2.0 / 3));
  CHECK(pairs(ErrorRate::of_words(), {"b c d"}, {"a"}) == 3);
  CHECK(pairs(ErrorRate::of_characters(), {"sitting"}, {"kitten"}) == 0.5);
  CHECK(std::isnan(ErrorRate::of_words().value()));
}

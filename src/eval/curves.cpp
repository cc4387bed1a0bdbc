#include "eval/curves.h"

#include <algorithm>
#include <cmath>

namespace millrace::eval {

void log_odds(std::span<const float> logits, std::vector<double>& odds) {
  odds.resize(logits.size());
  const auto top = static_cast<size_t>(most_probable(logits));
  const double largest = logits[top];
  double others = 0;  // than the most probable one: 1 − p would lose them all where p is about 1
  for (size_t i = 0; i < logits.size(); ++i)
    if (i != top) others += odds[i] = std::exp(logits[i] - largest);
  for (size_t i = 0; i < logits.size(); ++i)
    odds[i] =
        i == top ? -std::log(others) : logits[i] - largest - std::log1p(std::max(others - odds[i], 0.0));
}

void KeptScores::merge(const KeptScores& other) {
  positive_.insert(positive_.end(), other.positive_.begin(), other.positive_.end());
  negative_.insert(negative_.end(), other.negative_.begin(), other.negative_.end());
}

std::vector<Tally> KeptScores::descending() const {
  std::vector<double> positive = positive_, negative = negative_;
  for (std::vector<double>* list : {&positive, &negative}) {
    if (std::any_of(list->begin(), list->end(), [](double x) { return std::isnan(x); })) return {};
    std::sort(list->begin(), list->end(), std::greater<>());
  }
  std::vector<Tally> tallies;
  for (size_t p = 0, n = 0; p < positive.size() || n < negative.size();) {
    const double score = p == positive.size()   ? negative[n]
                         : n == negative.size() ? positive[p]
                                                : std::max(positive[p], negative[n]);
    Tally& own = tallies.emplace_back();
    for (; p < positive.size() && positive[p] == score; ++p) ++own.positive;
    for (; n < negative.size() && negative[n] == score; ++n) ++own.negative;
  }
  return tallies;
}

double area_under_roc(const std::vector<Tally>& descending) {
  double above = 0, in_order = 0, negatives = 0;  // above: positives of higher scores
  for (const auto& [positive, negative] : descending) {
    const auto here = static_cast<double>(positive), against = static_cast<double>(negative);
    in_order += against * (above + here / 2);
    above += here;
    negatives += against;
  }
  return in_order / (above * negatives);
}

double average_precision(const std::vector<Tally>& descending) {
  double right = 0, told = 0, sum = 0;
  for (const auto& [positive, negative] : descending) {
    right += static_cast<double>(positive);
    told += static_cast<double>(positive + negative);
    if (positive > 0) sum += static_cast<double>(positive) * right / told;
  }
  return sum / right;
}

double mixed_average_precision(const std::vector<Tally>& descending) {
  double right = 0, told = 0, sum = 0;
  for (const auto& [positive, negative] : descending) {
    const auto here = static_cast<double>(positive), all = static_cast<double>(positive + negative);
    if (positive > 0) sum += here * (right + (here + 1) / 2) / (told + (all + 1) / 2);
    right += here;
    told += all;
  }
  return sum / right;
}

}  // namespace millrace::eval

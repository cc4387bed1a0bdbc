#include "eval/ranking.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <millrace/exact_sum.h>

#include "base/format.h"

namespace millrace::eval {
namespace {

/// Of place 0, 1 …
double discount(size_t place) { return 1 / std::log2(static_cast<double>(place) + 2); }

/// Places of rows, the highest score first.
std::vector<size_t> ranked(std::span<const float> scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return scores[x] > scores[y]; });
  return order;
}

bool can_be_ranked(std::span<const float> scores, std::span<const double> relevance) {
  MILLRACE_CHECK(scores.size() == relevance.size(), "{} scores of {} rows", scores.size(), relevance.size());
  return std::none_of(scores.begin(), scores.end(), [](float score) { return std::isnan(score); });
}

/// How many rows have this score or a higher one, and how many relevant ones.
std::pair<double, double> reaching(float score, std::span<const float> scores,
                                   std::span<const double> relevance) {
  double all = 0, relevant = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    if (scores[i] >= score) {
      ++all;
      relevant += relevance[i] > 0 ? 1 : 0;
    }
  return {all, relevant};
}

class QueryMean final : public Metric {
 public:
  explicit QueryMean(OfQuery of) : of_(std::move(of)) {}
  void update(const Judged& judged) override {
    for (size_t begin = 0, end = 0; begin < judged.queries.size(); begin = end) {
      while (end < judged.queries.size() && judged.queries[end] == judged.queries[begin]) ++end;
      const double value =
          of_(judged.outputs.subspan(begin, end - begin), judged.values.subspan(begin, end - begin));
      if (std::isnan(value)) continue;
      sum_.add(value);
      ++count_;
    }
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<QueryMean>(other);
    sum_.merge(more.sum_);
    count_ += more.count_;
  }
  double finalize() const override { return count_ ? sum_.value() / static_cast<double>(count_) : NAN; }

 private:
  OfQuery of_;
  ExactSum sum_;
  int64_t count_ = 0;
};

}  // namespace

double ndcg(std::span<const float> scores, std::span<const double> relevance, int64_t k) {
  if (!can_be_ranked(scores, relevance)) return NAN;
  const size_t rows = scores.size(), most = k > 0 ? std::min(rows, static_cast<size_t>(k)) : rows;
  std::vector<double> gains(rows);
  for (size_t i = 0; i < rows; ++i) gains[i] = std::exp2(relevance[i]) - 1;
  const std::vector<size_t> order = ranked(scores);
  double found = 0;
  for (size_t begin = 0, end = 0; begin < most; begin = end) {
    double sum = 0, weight = 0;  // of those that share the places from begin on
    for (; end < rows && scores[order[end]] == scores[order[begin]]; ++end) {
      sum += gains[order[end]];
      if (end < most) weight += discount(end);
    }
    found += sum / static_cast<double>(end - begin) * weight;
  }
  std::sort(gains.begin(), gains.end(), std::greater<>());
  double best = 0;
  for (size_t i = 0; i < most; ++i) best += gains[i] * discount(i);
  return best > 0 ? found / best : NAN;
}

double query_average_precision(std::span<const float> scores, std::span<const double> relevance) {
  if (!can_be_ranked(scores, relevance)) return NAN;
  double sum = 0, count = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (relevance[i] <= 0) continue;
    const auto [all, relevant] = reaching(scores[i], scores, relevance);
    sum += relevant / all;
    ++count;
  }
  return count > 0 ? sum / count : NAN;
}

double reciprocal_rank(std::span<const float> scores, std::span<const double> relevance) {
  if (!can_be_ranked(scores, relevance)) return NAN;
  double best = NAN;
  for (size_t i = 0; i < scores.size(); ++i)
    if (relevance[i] > 0 && !(scores[i] <= best)) best = scores[i];
  if (std::isnan(best)) return NAN;
  const auto [all, relevant] = reaching(static_cast<float>(best), scores, relevance);
  const auto equal = static_cast<double>(std::count(scores.begin(), scores.end(), static_cast<float>(best)));
  // Each of the rows that share the places may be the first: its chance, where those before are not relevant.
  double mean = 0, none_before = 1;
  for (double place = all - equal + 1, left = equal; left >= relevant; ++place, --left) {
    mean += none_before * relevant / left / place;
    none_before *= (left - relevant) / left;
  }
  return mean;
}

std::unique_ptr<Metric> query_mean(OfQuery of) { return std::make_unique<QueryMean>(std::move(of)); }

}  // namespace millrace::eval

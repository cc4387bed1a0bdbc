// How well the rows of a query are ranked. Of equal scores no order is known: they share their places (NDCG),
// or all stand at the last of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include <millrace/exact_sum.h>

#include "eval/metric.h"

namespace millrace::eval {

/// What a row of a relevance is worth: the relevance itself (Järvelin and Kekäläinen, 2002), or 2^relevance −
/// 1 (Burges et al., 2005), by which collections with grades are usually judged.
enum class Gain { linear, exponential };

/// The discounted cumulative gain of the first `k` rows (0: of all), by that of the best order; NaN where no
/// row is relevant.
double ndcg(std::span<const float> scores, std::span<const double> relevance, int64_t k = 0,
            Gain gain = Gain::exponential);
/// The mean over relevant rows (relevance above 0) of the precision at their place; NaN without any.
double query_average_precision(std::span<const float> scores, std::span<const double> relevance);
/// 1 / place of the first relevant row; NaN without any.
double reciprocal_rank(std::span<const float> scores, std::span<const double> relevance);

/// The mean over queries of Own::of(scores, relevance); those for which it is NaN are left out.
template <typename Own>
class QueryMean : public Metric {
 public:
  void update(const Judged& judged) override {
    for (size_t begin = 0, end = 0; begin < judged.queries.size(); begin = end) {
      while (end < judged.queries.size() && judged.queries[end] == judged.queries[begin]) ++end;
      const double value = static_cast<const Own*>(this)->of(judged.outputs.subspan(begin, end - begin),
                                                             judged.values.subspan(begin, end - begin));
      if (std::isnan(value)) continue;
      sum_.add(value);
      ++count_;
    }
  }
  void merge(const Metric& other) override {
    const QueryMean& more = same_metric<Own>(other);
    sum_.merge(more.sum_);
    count_ += more.count_;
  }
  double finalize() const override { return count_ ? sum_.value() / static_cast<double>(count_) : NAN; }

 private:
  ExactSum sum_;
  int64_t count_ = 0;
};

}  // namespace millrace::eval

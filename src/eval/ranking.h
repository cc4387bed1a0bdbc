// How well the rows of a query are ranked. Of equal scores no order is known: they share their places (NDCG),
// or all stand at the last of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "eval/metric.h"

namespace millrace::eval {

/// The discounted cumulative gain of the first `k` rows (0: of all), by that of the best order; NaN where no
/// row is relevant. A row is worth 2^relevance − 1 (Burges et al., 2005), by which collections with grades
/// are usually judged.
double ndcg(std::span<const float> scores, std::span<const double> relevance, int64_t k = 0);
/// The mean over relevant rows (relevance above 0) of the precision at their place; NaN without any.
double query_average_precision(std::span<const float> scores, std::span<const double> relevance);
/// 1 / place of the first relevant row, of rows with equal scores the mean over their orders; NaN without
/// any.
double reciprocal_rank(std::span<const float> scores, std::span<const double> relevance);

/// The mean over queries of what is said of each by scores and relevance; those for which it is NaN are left
/// out.
using OfQuery = std::function<double(std::span<const float> scores, std::span<const double> relevance)>;
std::unique_ptr<Metric> query_mean(OfQuery of);

}  // namespace millrace::eval

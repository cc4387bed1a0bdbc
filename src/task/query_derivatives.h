// Losses of rankings for what is fitted to all queries at once instead of learning by steps: trees.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <millrace/array.h>

#include "task/recipe_sections.h"

namespace millrace::task {

/// What a loss says of one query's scores: the sum of its terms (pairs, rows, or the query itself), and how
/// many there are. The loss of many queries is the mean over all their terms.
struct QueryLoss {
  double sum = 0, terms = 0;
};

/// The same loss as LossKind::make() has, query by query, with derivatives that need no graph: the rows of a
/// long query against each other are none to differentiate twice.
class QueryDerivatives {
 public:
  /// InputError, naming `key`, for a loss that is not one of those of rankings.
  QueryDerivatives(const ChosenLoss& loss, const std::string& key);

  /// Of one query; the first and second derivatives of the sum by each score.
  QueryLoss query(std::span<const float> scores, std::span<const float> relevance, std::span<float> first,
                  std::span<float> second) const;

  struct Found {
    double loss = 0;
    Array first, second;  // f32 [rows, 1]
  };
  /// Of scores f32 [rows, 1] and relevances of all rows of queries, one query behind the other. The second
  /// derivatives are above 0.
  Found operator()(std::span<const int64_t> queries, const Array& scores, const Array& relevance) const;

 private:
  QueryLoss (*query_)(std::span<const float> scores, std::span<const float> relevance,
                      const Settings& settings, std::span<float> first, std::span<float> second) = nullptr;
  Settings settings_;
  bool root_ = false;  // the loss is the root of the mean
};

}  // namespace millrace::task

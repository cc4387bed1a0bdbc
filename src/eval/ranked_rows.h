// The rows of a query against each other, as graphs: for losses of rankings, and for what a step shows.
#pragma once

#include <numbers>
#include <vector>

#include <millrace/tensor.h>

namespace millrace::eval {

/// Queries as a loss sees them: a row for each, with places for the rows of the longest.
struct RankedRows {
  /// `logits` [batch, length, 1], `targets` f32 [batch, length]: relevances from 0 on, -1 where a query has
  /// no row.
  RankedRows(const Tensor& logits, const Tensor& targets);

  Tensor there;      // f32 [batch, length]: 1 where there is a row, else 0
  Tensor scores;     // [batch, length], 0 where there is none
  Tensor relevance;  // the same

  /// [batch, length, length], of rows i and j: value of i less that of j.
  static Tensor less(const Tensor& values);
  /// f32 [batch, length, length]: 1 where row i is more relevant than row j, else 0.
  Tensor pairs() const;
  /// Place of each row, 0 the first, where the greatest of `values` stands first, and of equals the first;
  /// f32, rows that are not there behind all others.
  Tensor places(const Tensor& values) const;
  /// 2^relevance - 1.
  Tensor gains() const;
  /// 1 / log2(place + 2); 0 from place `top` on (0: never).
  static Tensor discounts(const Tensor& places, int64_t top);
  /// [batch]: the discounted gains of the best order; 1 where nothing is relevant.
  Tensor best(int64_t top) const;
  /// NDCG of each query, 1 where nothing is relevant, as there is nothing to be missed.
  Tensor ndcg(int64_t top) const;
};

/// Terms of each query [batch], of which there are `counts`, so that the mean over queries is the mean over
/// terms; 0 where there are none.
Tensor mean_of_terms(const Tensor& sums, const Tensor& counts);

inline RankedRows::RankedRows(const Tensor& logits, const Tensor& targets) {
  const DType dtype = logits.dtype() == f64 ? f64 : f32;
  const Tensor known = targets >= 0;
  there = cast(known, dtype);
  scores = cast(squeeze(logits, 2), dtype) * there;
  relevance = cast(maximum(targets, 0), dtype);
}

inline Tensor RankedRows::less(const Tensor& values) { return unsqueeze(values, 2) - unsqueeze(values, 1); }

inline Tensor RankedRows::pairs() const {
  const Tensor both = unsqueeze(there, 2) * unsqueeze(there, 1);
  return cast(less(relevance) > 0, there.dtype()) * both;
}

inline Tensor RankedRows::places(const Tensor& values) const {
  const DType dtype = there.dtype();
  const Tensor own = apply("stop_gradient", std::vector<Tensor>{values}, {})[0];
  const Tensor row = cast(iota(values.dim(1).size()), dtype);
  const Tensor earlier = cast(unsqueeze(row, 1) > unsqueeze(row, 0), dtype);  // j stands before i
  const Tensor gap = less(own);
  const Tensor ahead = cast(gap < 0, dtype) + cast(equal(gap, 0.0), dtype) * earlier;
  const Tensor before = (ahead * unsqueeze(there, 1)).sum({2});
  return before + (1 - there) * static_cast<double>(values.dim(1).size());
}

inline Tensor RankedRows::gains() const { return (exp(relevance * std::numbers::ln2) - 1) * there; }

inline Tensor RankedRows::discounts(const Tensor& places, int64_t top) {
  const Tensor discount = std::numbers::ln2 / log(places + 2);
  return top > 0 ? discount * cast(places < static_cast<double>(top), discount.dtype()) : discount;
}

inline Tensor RankedRows::best(int64_t top) const {
  const Tensor sum = (gains() * discounts(places(relevance), top)).sum({1});
  return where(sum > 0, sum, 1.0);
}

inline Tensor RankedRows::ndcg(int64_t top) const {
  const Tensor found = (gains() * discounts(places(scores), top)).sum({1});
  const Tensor none = 1 - cast(max(relevance, {1}) > 0, there.dtype());
  return found / best(top) + none;
}

inline Tensor mean_of_terms(const Tensor& sums, const Tensor& counts) {
  constexpr double least = 1e-12;  // of a batch without terms
  return sums / maximum(counts.mean(), least);
}

}  // namespace millrace::eval

#include "eval/compare.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/format.h"
#include "base/parallel_for.h"

namespace millrace::eval {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t least_groups = 20;
constexpr size_t draws = 2000;

double t_quantile(double probability, double freedom) {
  return boost::math::quantile(boost::math::students_t(freedom), probability);
}

/// Seeds a side with which so large a difference would be seen in four of five cases.
int64_t seeds_wanted(double difference, double variance) {
  constexpr int64_t most = 100000;
  for (int64_t n = 2; n < most; n = n < 100 ? n + 1 : n + n / 50) {
    const auto count = static_cast<double>(n);
    const double freedom = 2 * count - 2;
    const double wanted =
        (t_quantile(0.975, freedom) + t_quantile(0.8, freedom)) * std::sqrt(2 * variance / count);
    if (std::abs(difference) >= wanted) return n;
  }
  return most;
}

double mean_resampled(const Seeds& seeds, size_t metric, const std::vector<int>& times) {
  double sum = 0;
  for (const Measurement* seed : seeds) sum += seed->resampled(metric, times);
  return sum / static_cast<double>(seeds.size());
}

}  // namespace

Spread spread_of(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  Spread made;
  double squares = 0;
  for (const double value : values) made.mean += value / count;
  for (const double value : values) squares += (value - made.mean) * (value - made.mean);
  made.deviation = std::sqrt(squares / (count - 1));
  return made;
}

Mcnemar mcnemar(int64_t only_first, int64_t only_second) {
  Mcnemar made{only_first, only_second, 1};
  const int64_t all = only_first + only_second;
  if (all == 0) return made;
  const boost::math::binomial coin(static_cast<double>(all), 0.5);
  made.p = std::min(1.0, 2 * boost::math::cdf(coin, static_cast<double>(std::min(only_first, only_second))));
  return made;
}

Difference compare_rows(const Seeds& first, const Seeds& second, size_t metric, size_t other) {
  const Measurement& any = *first.front();
  for (const Seeds* side : {&first, &second})
    for (const Measurement* seed : *side)
      MILLRACE_CHECK(seed->parts() == any.parts(), "{} groups cannot be compared with {}", seed->parts(),
                     any.parts());
  std::vector<int> times(static_cast<size_t>(any.parts()), 1);
  Difference made{mean_resampled(first, metric, times), mean_resampled(second, other, times), unknown,
                  unknown};
  std::vector<size_t> filled;
  for (size_t group = 0; group < times.size(); ++group)
    if (any.rows_in(group) > 0) filled.push_back(group);
  if (filled.size() < least_groups) return made;
  std::mt19937_64 random(1);
  std::vector<std::vector<int>> drawn(draws, std::vector<int>(times.size(), 0));
  for (std::vector<int>& each : drawn)
    for (size_t i = 0; i < filled.size(); ++i) ++each[filled[random() % filled.size()]];
  std::vector<double> differences(draws);
  parallel_for(static_cast<int64_t>(draws), 0, [&](int64_t draw) {
    const auto at = static_cast<size_t>(draw);
    differences[at] = mean_resampled(second, other, drawn[at]) - mean_resampled(first, metric, drawn[at]);
  });
  std::erase_if(differences, [](double difference) { return !std::isfinite(difference); });
  // A metric that many draws leave undefined (no row of a class) has no interval.
  if (differences.size() < draws * 9 / 10) return made;
  std::sort(differences.begin(), differences.end());
  const auto at = [&](double share) {
    return differences[static_cast<size_t>(share * static_cast<double>(differences.size() - 1) + 0.5)];
  };
  made.low = at(0.025);
  made.high = at(0.975);
  return made;
}

std::optional<Mcnemar> compare_answers(const Measurement& first, const Measurement& second, size_t metric,
                                       size_t other) {
  const std::vector<float>&a = first.rows_of(metric), &b = second.rows_of(other);
  if (a.empty()) return std::nullopt;
  MILLRACE_CHECK(a.size() == b.size(), "{} rows beside {}", a.size(), b.size());
  int64_t only_first = 0, only_second = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    only_first += a[i] > b[i];
    only_second += b[i] > a[i];
  }
  return mcnemar(only_first, only_second);
}

std::optional<SeedDifference> compare_seeds(std::span<const double> first, std::span<const double> second) {
  if (first.size() < 2 || second.size() < 2) return std::nullopt;
  const Spread a = spread_of(first), b = spread_of(second);
  SeedDifference made;
  made.first = a.mean;
  made.second = b.mean;
  const auto n = static_cast<double>(first.size()), m = static_cast<double>(second.size());
  const double u = a.deviation * a.deviation / n, v = b.deviation * b.deviation / m, error = std::sqrt(u + v);
  if (!(error > 0)) {  // every seed gave the same
    made.low = made.high = made.difference();
    made.p = made.difference() == 0 ? 1 : 0;
    return made;
  }
  const double freedom = (u + v) * (u + v) / (u * u / (n - 1) + v * v / (m - 1));
  const double half = t_quantile(0.975, freedom) * error;
  made.low = made.difference() - half;
  made.high = made.difference() + half;
  const boost::math::students_t student(freedom);
  made.p = 2 * boost::math::cdf(boost::math::complement(student, std::abs(made.difference()) / error));
  if (!made.significant() && made.difference() != 0) {
    const auto there = static_cast<int64_t>(std::min(first.size(), second.size()));
    made.more = std::max<int64_t>(1, seeds_wanted(made.difference(), (u * n + v * m) / 2) - there);
  }
  return made;
}

}  // namespace millrace::eval

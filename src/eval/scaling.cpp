#include "eval/scaling.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <map>

#include "base/format.h"

namespace millrace::eval {
namespace {

constexpr int64_t law_numbers = 3;
constexpr double smallest_exponent = 0.03, largest_exponent = 2;
constexpr int exponents = 80, floors = 80;

std::map<double, std::vector<double>> by_size(std::span<const ScalePoint> points) {
  std::map<double, std::vector<double>> sizes;
  for (const ScalePoint& point : points) sizes[point.size].push_back(point.error);
  return sizes;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double median_of(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

double ScaleLaw::at(double size) const { return floor + factor * std::pow(size, -exponent); }

ScaleFit::ScaleFit(std::span<const ScalePoint> points) : points_(points.begin(), points.end()) {
  if (points.empty()) fail<InputError>("there is no training to fit a law to");
  for (const ScalePoint& point : points)
    if (!(point.size > 0 && point.error > 0 && std::isfinite(point.size) && std::isfinite(point.error)))
      fail<InputError>("a training of size {} ended with an error of {}: a law is fitted to those above 0",
                       point.size, point.error);
  const auto sizes = by_size(points_);
  unit_ = sizes.rbegin()->first;
  least_ = INFINITY;
  for (const auto& [size, errors] : sizes) least_ = std::min(least_, mean_of(errors));
  // Errors are compared by their ratio. By each training's own one, low ones would count more.
  std::vector<double> plain;
  for (const ScalePoint& point : points_) {
    const double mean = mean_of(sizes.at(point.size));
    plain.push_back(1 / (mean * mean));
  }
  weights_ = plain;
  constexpr int rounds = 4;
  for (int round = 0; round < rounds; ++round) {
    fit();
    std::vector<double> off;
    for (const ScalePoint& point : points_) off.push_back(std::abs(point.error / law_.at(point.size) - 1));
    constexpr double deviations_of_median = 1.4826, usual = 2.5;
    const double most = usual * deviations_of_median * median_of(off);
    for (size_t i = 0; i < off.size() && most > 0; ++i)
      weights_[i] = plain[i] * (off[i] > most ? most / off[i] : 1);
  }
  fit();
  judge();
}

ScaleFit::Candidate ScaleFit::candidate(double floor, double exponent) const {
  double xx = 0, xy = 0;
  for (size_t i = 0; i < points_.size(); ++i) {
    const double x = std::pow(points_[i].size / unit_, -exponent);
    xx += weights_[i] * x * x;
    xy += weights_[i] * x * (points_[i].error - floor);
  }
  Candidate made{floor, exponent, std::max(0.0, xy / xx), 0, xx};
  for (size_t i = 0; i < points_.size(); ++i) {
    const double off = points_[i].error - floor - made.factor * std::pow(points_[i].size / unit_, -exponent);
    made.left += weights_[i] * off * off;
  }
  return made;
}

/// Over a grid of floors and exponents, then finer around the best.
void ScaleFit::fit() {
  candidates_.clear();
  const double step = std::log(largest_exponent / smallest_exponent) / (exponents - 1);
  for (int e = 0; e < exponents; ++e)
    for (int f = 0; f < floors; ++f)
      candidates_.push_back(candidate(least_ * f / (floors - 1), smallest_exponent * std::exp(step * e)));
  const auto better = [](const Candidate& one, const Candidate& other) { return one.left < other.left; };
  Candidate best = *std::min_element(candidates_.begin(), candidates_.end(), better);
  double across = least_ / (floors - 1), along = step;
  constexpr int finer = 24, around = 2;
  for (int round = 0; round < finer; ++round) {
    const Candidate middle = best;
    for (int f = -around; f <= around; ++f)
      for (int e = -around; e <= around; ++e) {
        const double exponent = middle.exponent * std::exp(along * e / around);
        best = std::min(best,
                        candidate(std::clamp(middle.floor + across * f / around, 0.0, least_),
                                  std::clamp(exponent, smallest_exponent, largest_exponent)),
                        better);
      }
    across /= 1.5;
    along /= 1.5;
  }
  candidates_.push_back(best);
  left_ = best.left;
  law_ = {best.floor, best.factor * std::pow(unit_, best.exponent), best.exponent};
  const auto free = std::max<int64_t>(1, std::ssize(points_) - law_numbers);
  spread_ = std::sqrt(left_ / static_cast<double>(free));
}

ScaleValue ScaleFit::at(double size) const {
  const auto free = std::ssize(points_) - law_numbers;
  if (free < 1) return {law_.at(size), 0, std::numeric_limits<double>::infinity()};
  const double t = boost::math::quantile(boost::math::students_t(static_cast<double>(free)), 0.975);
  // What is left of noise alone; numbers that lie on a law leave nothing but their rounding.
  const double variance = std::max(left_ / static_cast<double>(free), 1e-12);
  const double most = left_ + t * t * variance;
  ScaleValue value{law_.at(size), law_.at(size), law_.at(size)};
  for (const Candidate& each : candidates_) {
    if (each.left > most) continue;
    const double half = std::sqrt((most - each.left) / each.growth);
    const double scale = std::pow(size / unit_, -each.exponent);
    value.low = std::min(value.low, each.floor + std::max(0.0, each.factor - half) * scale);
    value.high = std::max(value.high, each.floor + (each.factor + half) * scale);
  }
  return value;
}

void ScaleFit::judge() {
  const auto sizes = by_size(points_);
  constexpr int64_t least_sizes = 4, least_points = 6;
  if (std::ssize(sizes) < least_sizes || std::ssize(points_) < least_points) {
    doubt_ = fmt::format(
        "too few points: {} trainings of {} sizes, a law of three numbers wants {} of {} at least",
        points_.size(), sizes.size(), least_points, least_sizes);
    return;
  }
  const ScaleValue now = at(unit_), more = at(10 * unit_);
  const double gained = law_.at(sizes.begin()->first) - now.value;
  if (law_.factor == 0 || gained < 2 * spread_ * now.value) {
    doubt_ =
        "the error does not fall clearly with the size: either more would change little, or something else "
        "is in the way (trainings too short, an unsuited learning rate)";
    return;
  }
  if (more.high - more.low > 0.6 * now.value)
    doubt_ = "very different laws fit these points: smaller sizes, or more seeds, would tell them apart";
}

}  // namespace millrace::eval

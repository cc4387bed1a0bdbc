#include "eval/calibration.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/format.h"

namespace millrace::eval {
namespace {

double sigmoid_of(double logit) { return 1 / (1 + std::exp(-logit)); }
double logit_of(double probability) { return std::log(probability) - std::log1p(-probability); }

/// The slope of the log loss by a factor of all logits, and the slope of that, summed over rows.
std::pair<double, double> slopes(const KeptRows& rows, double factor) {
  double slope = 0, bend = 0;
  for (size_t i = 0; i < rows.values.size(); ++i) {
    const double logit = rows.outputs[i], p = sigmoid_of(factor * logit);
    slope += (p - rows.values[i]) * logit;
    bend += p * (1 - p) * logit * logit;
  }
  for (size_t row = 0; row < rows.labels.size(); ++row) {
    const auto width = static_cast<size_t>(rows.width);
    const float* const logits = rows.outputs.data() + row * width;
    const double largest = *std::max_element(logits, logits + width);
    double sum = 0, mean = 0, squares = 0;  // of how far logits are below the largest, by probability
    for (size_t i = 0; i < width; ++i) {
      const double below = logits[i] - largest, weight = std::exp(factor * below);
      sum += weight;
      mean += weight * below;
      squares += weight * below * below;
    }
    mean /= sum;
    slope += mean - (logits[rows.labels[row]] - largest);
    bend += squares / sum - mean * mean;
  }
  return {slope, bend};
}

/// The score that decides of each row: of two classes how far the second is above the first.
std::vector<double> scores_of(const KeptRows& rows) {
  std::vector<double> scores;
  if (rows.labels.empty()) return {rows.outputs.begin(), rows.outputs.end()};
  for (size_t row = 0; row < rows.labels.size(); ++row)
    scores.push_back(rows.outputs[2 * row + 1] - rows.outputs[2 * row]);
  return scores;
}

/// Places between neighbouring scores, one below and one above all, and 0.
std::vector<double> places_between(std::vector<double> scores) {
  std::sort(scores.begin(), scores.end());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::vector<double> places = {0, scores.front() - 1, scores.back() + 1};
  for (size_t i = 1; i < scores.size(); ++i) places.push_back(scores[i - 1] / 2 + scores[i] / 2);
  std::sort(places.begin(), places.end());
  return places;
}

double best_place(const KeptRows& rows, const MetricKind& metric) {
  const std::vector<double> scores = scores_of(rows);
  if (std::any_of(scores.begin(), scores.end(), [](double x) { return !std::isfinite(x); }))
    fail<InputError>("a logit is not finite: no threshold can be found");
  const std::vector<double> places = places_between(scores);
  const auto value_at = [&](double place) {
    const std::unique_ptr<Metric> measured = metric.init();
    measured->update(rows.judged({&place, 1}));
    return measured->finalize() * (metric.higher_is_better ? 1 : -1);
  };
  std::optional<double> best, least;
  size_t at = 0, first = 0, last = places.size() - 1;
  const auto look = [&](size_t i) {
    const double value = value_at(places[i]);
    if (std::isnan(value)) return;
    if (!least || value < *least) least = value;
    if (best && (value < *best || (value == *best && std::abs(places[i]) >= std::abs(places[at])))) return;
    best = value;
    at = i;
  };
  look(static_cast<size_t>(std::lower_bound(places.begin(), places.end(), 0.0) - places.begin()));
  for (size_t step = 0; step != 1;) {
    step = (last - first) / 512 + 1;
    for (size_t i = first; i <= last; i += step) look(i);
    first = at > step ? at - step : 0;
    last = std::min(places.size() - 1, at + step);
  }
  if (!best || *best == *least)
    fail<InputError>("{} is the same at every threshold: tune by a metric of decisions, such as f1",
                     metric.name);
  return places[at];
}

}  // namespace

double Curve::at(double where) const {
  if (where <= x.front()) return y.front();
  if (where >= x.back()) return y.back();
  const auto right = static_cast<size_t>(std::upper_bound(x.begin(), x.end(), where) - x.begin());
  return y[right - 1] + (y[right] - y[right - 1]) * (where - x[right - 1]) / (x[right] - x[right - 1]);
}

std::vector<double> Calibration::logit_thresholds() const {
  std::vector<double> logits;
  for (const double threshold : thresholds) logits.push_back(static_cast<float>(logit_of(threshold)));
  return logits;
}

void KeptRows::add(const Judged& judged) {
  width = judged.width;
  outputs.insert(outputs.end(), judged.outputs.begin(), judged.outputs.end());
  labels.insert(labels.end(), judged.labels.begin(), judged.labels.end());
  values.insert(values.end(), judged.values.begin(), judged.values.end());
}

Judged KeptRows::judged(std::span<const double> thresholds) const {
  return {.outputs = outputs,
          .rows = rows(),
          .width = width,
          .labels = labels,
          .values = values,
          .thresholds = thresholds};
}

KeptRows KeptRows::column(int64_t i) const {
  KeptRows one;
  one.width = 1;
  for (auto at = static_cast<size_t>(i); at < values.size(); at += static_cast<size_t>(width)) {
    one.outputs.push_back(outputs[at]);
    one.values.push_back(values[at]);
  }
  return one;
}

double fit_temperature(const KeptRows& rows) {
  // The loss is convex in the factor 1 / T: Newton's steps, and halves of what is left where they leave it.
  double low = 1e-3, high = 1e3, factor = 1;
  if (slopes(rows, low).first >= 0) return 1 / low;
  if (slopes(rows, high).first <= 0) return 1 / high;
  for (int i = 0; i < 200 && high - low > 1e-12 * high; ++i) {
    const auto [slope, bend] = slopes(rows, factor);
    (slope > 0 ? high : low) = factor;
    const double next = factor - slope / bend;
    if (std::abs(next - factor) <= 1e-13 * factor) break;
    factor = next > low && next < high ? next : (low + high) / 2;
  }
  return 1 / factor;
}

Curve fit_isotonic(std::span<const double> x, std::span<const double> y) {
  MILLRACE_CHECK(x.size() == y.size() && !x.empty(), "{} places with {} values", x.size(), y.size());
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  struct Level {
    double first, last, sum, weight;
    double mean() const { return sum / weight; }
  };
  std::vector<Level> levels;
  for (size_t i = 0; i < order.size();) {
    Level next{x[order[i]], x[order[i]], 0, 0};
    for (; i < order.size() && x[order[i]] == next.first; ++i) {
      next.sum += y[order[i]];
      ++next.weight;
    }
    while (!levels.empty() && levels.back().mean() >= next.mean()) {
      next = {levels.back().first, next.last, levels.back().sum + next.sum,
              levels.back().weight + next.weight};
      levels.pop_back();
    }
    levels.push_back(next);
  }
  Curve curve;
  for (const Level& level : levels) {
    curve.x.push_back(level.first);
    curve.y.push_back(level.mean());
    if (level.last == level.first) continue;
    curve.x.push_back(level.last);
    curve.y.push_back(level.mean());
  }
  return curve;
}

std::vector<Curve> fit_curves(const KeptRows& rows) {
  const auto width = static_cast<size_t>(rows.width), count = static_cast<size_t>(rows.rows());
  const bool pair = !rows.labels.empty() && width == 2;
  std::vector<Curve> curves;
  std::vector<double> x(count), y(count);
  for (size_t c = pair ? 1 : 0; c < width; ++c) {
    for (size_t row = 0; row < count; ++row) {
      const auto logits = std::span(rows.outputs).subspan(row * width, width);
      x[row] = rows.labels.empty() ? logits[c]
               : pair              ? logits[1] - logits[0]
                                   : log_probability(logits, static_cast<int64_t>(c));
      y[row] =
          rows.labels.empty() ? rows.values[row * width + c] : rows.labels[row] == static_cast<int64_t>(c);
      if (!std::isfinite(x[row])) fail<InputError>("a logit is not finite: nothing can be calibrated");
    }
    Curve& curve = curves.emplace_back(fit_isotonic(x, y));
    const double edge = 0.5 / static_cast<double>(count);
    for (double& p : curve.y) p = std::clamp(p, edge, 1 - edge);
  }
  return curves;
}

std::vector<double> tune_thresholds(const KeptRows& rows, const MetricKind& metric) {
  std::vector<double> thresholds;
  if (!rows.labels.empty()) {
    MILLRACE_CHECK(rows.width == 2, "a threshold of {} classes", rows.width);
    return {sigmoid_of(best_place(rows, metric))};
  }
  for (int64_t i = 0; i < rows.width; ++i) {
    const KeptRows column = rows.column(i);
    // A label that all rows have, or none, says nothing about where to decide.
    const bool known = std::adjacent_find(column.values.begin(), column.values.end(),
                                          std::not_equal_to<>()) != column.values.end();
    thresholds.push_back(known ? sigmoid_of(best_place(column, metric)) : 0.5);
  }
  return thresholds;
}

}  // namespace millrace::eval

#include "eval/metric.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>

#include "base/format.h"
#include "base/number_from.h"
#include "base/words.h"

namespace millrace::eval {

#include "generated/metrics.inc"

namespace {

constexpr double quantile = 1.959963984540054;  // 97.5 % of the normal distribution

bool applies(const MetricKind& kind, const std::string& output) {
  return std::find(kind.outputs.begin(), kind.outputs.end(), output) != kind.outputs.end();
}

/// "top-5" is of those whose names begin with "top-", and its number is 5; nothing where a name ends in none.
std::optional<int64_t> number_in(const std::string& name, const std::string& family) {
  const size_t begin = family.rfind('-') + 1;
  if (begin == 0 || name.size() <= begin || name.compare(0, begin, family, 0, begin) != 0 ||
      name[begin] == '0')
    return std::nullopt;
  return number_from(name.substr(begin));
}

}  // namespace

Registry<MetricKind>& metric_kinds() {
  static Registry<MetricKind> kinds("metric", {MILLRACE_FOUND_METRICS});
  return kinds;
}

const MetricKind& register_metric(const MetricKind& kind) {
  return metric_kinds().add(kind, {{"init", bool{kind.init}}, {"outputs", !kind.outputs.empty()}});
}

const MetricKind* find_metric(const std::string& name) {
  if (const MetricKind* kind = metric_kinds().find(name)) return kind;
  static std::mutex mutex;
  static std::deque<MetricKind> made;  // for as long as the program runs, as the others
  const std::lock_guard lock(mutex);
  for (const MetricKind& kind : made)
    if (kind.name == name) return &kind;
  for (const MetricKind* kind : metric_kinds().all()) {
    const auto number = kind->init_of ? number_in(name, kind->name) : std::nullopt;
    if (!number || *number < kind->least || *number > kind->most) continue;
    MetricKind& own = made.emplace_back(*kind);
    own.name = name;
    own.init = [init = kind->init_of, number = *number] { return init(number); };
    own.of_rows = nullptr;  // which is of the number in the kind's own name
    return &own;
  }
  return nullptr;
}

const MetricKind& metric_kind(const std::string& name) {
  const MetricKind* const kind = find_metric(name);
  return kind ? *kind : metric_kinds().at(name);
}

std::vector<std::string> metrics_for(std::span<const std::string> outputs) {
  std::vector<std::string> names;
  for (const MetricKind* kind : metric_kinds().all())
    if (std::any_of(outputs.begin(), outputs.end(),
                    [&](const auto& output) { return applies(*kind, output); }))
      names.push_back(kind->name);
  return names;
}

Judged Judged::part(int64_t first, int64_t count) const {
  const auto cut = [&](const auto& list, int64_t each) {
    return list.empty() ? list
                        : list.subspan(static_cast<size_t>(first * each), static_cast<size_t>(count * each));
  };
  return {cut(outputs, width),   count,      width,           cut(labels, 1),    cut(values, width), bytes,
          cut(predicted, width), thresholds, cut(queries, 1), cut(generated, 1), cut(references, 1)};
}

int64_t Judged::told(int64_t row) const {
  const std::span<const float> own = logits(row);
  if (thresholds.empty()) return most_probable(own);
  return static_cast<double>(own[1]) - static_cast<double>(own[0]) > thresholds[0] ? 1 : 0;
}

Measurement::Measurement(const std::vector<std::string>& names, const std::string& output_kind,
                         int64_t parts) {
  for (const std::string& name : names) {
    const MetricKind& kind = metric_kind(name);
    if (!applies(kind, output_kind))
      fail<InputError>(
          "the metric {} does not apply to an output of kind {}, but to {}; {} is measured by {}", name,
          output_kind, listed(kind.outputs), output_kind, fmt::join(metrics_for({&output_kind, 1}), ", "));
    kinds_.push_back(&kind);
  }
  begin(static_cast<size_t>(parts));
}

void Measurement::begin(size_t groups_wanted) {
  rows_.assign(groups_wanted, 0);
  kept_.resize(kinds_.size());
  for (const MetricKind* kind : kinds_)
    for (auto& metric : metrics_.emplace_back(groups_wanted))
      metric = made_by("metric", kind->name, kind->init());
}

Measurement Measurement::empty() const {
  Measurement made;
  made.kinds_ = kinds_;
  made.begin(rows_.size());
  return made;
}

void Measurement::update(const Judged& judged) {
  const auto rows = static_cast<size_t>(judged.rows), numbers = rows * static_cast<size_t>(judged.width);
  const size_t outputs = judged.outputs.size() + judged.predicted.size();
  MILLRACE_CHECK(outputs == numbers, "{} outputs of {} rows", outputs, rows);
  MILLRACE_CHECK(judged.generated.size() == judged.references.size(), "{} texts have {} references",
                 judged.generated.size(), judged.references.size());
  if (rows == 0) return;
  // One or the other, and the same all through a pass.
  if (!labelled_) labelled_ = !judged.labels.empty();
  MILLRACE_CHECK(
      judged.labels.size() == (*labelled_ ? rows : 0) && judged.values.size() == (*labelled_ ? 0 : numbers),
      "{} rows have {} labels and {} values", rows, judged.labels.size(), judged.values.size());
  for (const int64_t label : judged.labels)
    MILLRACE_CHECK(label >= 0 && label < judged.width, "label {} of {}", label, judged.width);
  MILLRACE_CHECK(judged.queries.empty() || judged.queries.size() == rows, "{} rows have {} queries", rows,
                 judged.queries.size());
  const size_t decided = *labelled_ ? 1 : static_cast<size_t>(judged.width);
  MILLRACE_CHECK(judged.thresholds.empty() ||
                     (judged.thresholds.size() == decided && (!*labelled_ || judged.width == 2)),
                 "{} thresholds of outputs {} wide", judged.thresholds.size(), judged.width);
  if (listener_) listener_(judged, next_);
  for (int64_t row = 0; row < judged.rows;) {
    const int64_t number = std::exchange(next_, next_ + step_);
    const auto group = static_cast<size_t>(number % parts());
    const int64_t first = row++;
    const auto query = [&](int64_t i) { return judged.queries[static_cast<size_t>(i)]; };
    while (!judged.queries.empty() && row < judged.rows && query(row) == query(first)) ++row;
    const Judged one = judged.part(first, row - first);
    for (auto& metric : metrics_) metric[group]->update(one);
    ++rows_[group];
    if (keep_rows_) keep_row(number, one);
  }
}

void Measurement::keep_row(int64_t number, const Judged& row) {
  for (size_t i = 0; i < kinds_.size(); ++i) {
    if (kinds_[i]->interval != MetricKind::wilson) continue;
    const auto place = static_cast<size_t>(number);
    if (kept_[i].size() <= place) kept_[i].resize(place + 1, std::numeric_limits<float>::quiet_NaN());
    const std::unique_ptr<Metric> alone = kinds_[i]->init();
    alone->update(row);
    kept_[i][place] = static_cast<float>(alone->finalize());
  }
}

double Measurement::resampled(size_t metric, std::span<const int> times) const {
  const std::unique_ptr<Metric> all = kinds_[metric]->init();
  for (size_t group = 0; group < times.size(); ++group)
    for (int i = 0; i < times[group]; ++i) all->merge(*metrics_[metric][group]);
  return all->finalize();
}

void Measurement::merge(const Measurement& other) {
  MILLRACE_CHECK(kinds_ == other.kinds_ && rows_.size() == other.rows_.size(),
                 "measurements of other metrics cannot be merged");
  for (size_t group = 0; group < rows_.size(); ++group) {
    for (size_t i = 0; i < metrics_.size(); ++i) metrics_[i][group]->merge(*other.metrics_[i][group]);
    rows_[group] += other.rows_[group];
  }
}

int64_t Measurement::count() const {
  int64_t rows = 0;
  for (const int64_t group : rows_) rows += group;
  return rows;
}

double Measurement::value(size_t metric, int64_t left_out) const {
  const std::unique_ptr<Metric> all = kinds_[metric]->init();
  for (int64_t group = 0; group < parts(); ++group)
    if (group != left_out) all->merge(*metrics_[metric][static_cast<size_t>(group)]);
  return all->finalize();
}

std::pair<double, double> Measurement::interval(size_t metric, double value) const {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  if (kinds_[metric]->interval == MetricKind::wilson) {
    if (std::isnan(value)) return {unknown, unknown};
    return wilson_interval(value, count());
  }
  if (std::find(rows_.begin(), rows_.end(), 0) != rows_.end()) return {unknown, unknown};
  std::vector<double> without(rows_.size());
  for (int64_t group = 0; group < parts(); ++group)
    without[static_cast<size_t>(group)] = this->value(metric, group);
  return jackknife_interval(value, without);
}

std::pair<double, double> jackknife_interval(double value, std::span<const double> without) {
  const auto groups = static_cast<double>(without.size());
  double mean = 0, squares = 0;
  for (const double x : without) mean += x;
  mean /= groups;
  for (const double x : without) squares += (x - mean) * (x - mean);
  const double error = std::sqrt(squares * (groups - 1) / groups);
  return {value - quantile * error, value + quantile * error};
}

std::vector<Measured> Measurement::finalize() const {
  std::vector<Measured> results;
  for (size_t i = 0; i < kinds_.size(); ++i) {
    const double result = value(i, -1);
    const auto [low, high] = interval(i, result);
    const MetricKind& kind = *kinds_[i];
    results.push_back({kind.name, result, std::max(low, kind.lowest), std::min(high, kind.highest)});
  }
  return results;
}

std::pair<double, double> wilson_interval(double share, int64_t n) {
  if (n == 0) return {0, 1};
  constexpr double z = quantile;
  const double count = static_cast<double>(n), centre = (share + z * z / (2 * count)) / (1 + z * z / count);
  const double half =
      z / (1 + z * z / count) * std::sqrt(share * (1 - share) / count + z * z / (4 * count * count));
  return {std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

void softmax(std::span<const float> logits, std::vector<double>& probabilities) {
  probabilities.resize(logits.size());
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) sum += probabilities[i] = std::exp(logits[i] - largest);
  for (double& p : probabilities) p /= sum;
}

double log_probability(std::span<const float> logits, int64_t label) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return logits[static_cast<size_t>(label)] - largest - std::log(sum);
}

int64_t most_probable(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

}  // namespace millrace::eval

#include <algorithm>
#include <cmath>

#include "data/statistics.h"

namespace millrace::data {
namespace {

constexpr size_t most_different = 10'000, most_frequent = 10;

/// Adds up one column, value by value.
class Sums {
 public:
  explicit Sums(ColumnKind kind) : kind_(kind) {}

  void add(const Value& value) {
    if (const auto* integer = std::get_if<int64_t>(&value))
      number(static_cast<double>(*integer));
    else if (const auto* real = std::get_if<double>(&value))
      number(*real);
    else if (const auto* text = std::get_if<std::string>(&value))
      content(text->size());
    else if (const auto* bytes = std::get_if<Bytes>(&value))
      content(bytes->size());
    else if (const auto* pixels = std::get_if<Pixels>(&value))
      content(pixels->bytes.size());
    else if (const auto* array = std::get_if<Array>(&value))
      content(static_cast<uint64_t>(array->bytes()));
    else
      ++result_.missing;
    const bool countable =
        kind_ == ColumnKind::integer || kind_ == ColumnKind::real || kind_ == ColumnKind::text;
    if (countable && !many_ && !std::holds_alternative<std::monostate>(value)) {
      const auto* text = std::get_if<std::string>(&value);
      ++times_[text ? *text : value_text(value, kind_)];
      many_ = times_.size() > most_different;
    }
  }

  ColumnStatistics finish() {
    if (numbers_ > 0) {
      result_.mean = mean_;
      result_.std = std::sqrt(squares_ / static_cast<double>(numbers_));
    }
    result_.different = many_ ? -1 : static_cast<int64_t>(times_.size());
    if (!many_) {
      result_.frequent.assign(times_.begin(), times_.end());
      std::stable_sort(result_.frequent.begin(), result_.frequent.end(),
                       [](const auto& a, const auto& b) { return a.second > b.second; });
      if (result_.frequent.size() > most_frequent) result_.frequent.resize(most_frequent);
    }
    return std::move(result_);
  }

 private:
  /// Welford's running mean and sum of squared differences.
  void number(double value) {
    if (!std::isfinite(value)) return;
    result_.least = numbers_ ? std::min(result_.least, value) : value;
    result_.most = numbers_ ? std::max(result_.most, value) : value;
    const double before = value - mean_;
    mean_ += before / static_cast<double>(++numbers_);
    squares_ += before * (value - mean_);
  }
  void content(uint64_t size) {
    result_.shortest = contents_ ? std::min(result_.shortest, size) : size;
    result_.longest = std::max(result_.longest, size);
    result_.bytes += size;
    ++contents_;
  }

  ColumnKind kind_;
  ColumnStatistics result_;
  int64_t numbers_ = 0, contents_ = 0;
  double mean_ = 0, squares_ = 0;
  std::map<std::string, int64_t> times_;
  bool many_ = false;
};

}  // namespace

std::vector<ColumnStatistics> column_statistics(const Dataset& dataset, const StatisticsOptions& options) {
  std::vector<Sums> sums;
  for (const Column& column : dataset.columns()) sums.emplace_back(column.kind);
  for (int64_t i = 0; i < dataset.count(); ++i) {
    for (size_t c = 0; c < sums.size(); ++c) sums[c].add(dataset.read(i, c));
    if (options.progress && i % 1000 == 0) options.progress(i, dataset.count());
  }
  std::vector<ColumnStatistics> list;
  for (Sums& each : sums) list.push_back(each.finish());
  return list;
}

}  // namespace millrace::data

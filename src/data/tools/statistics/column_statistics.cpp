#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>

#include "base/parallel_for.h"
#include "base/text_hash.h"
#include "data/codecs/sounds/sound.h"
#include "data/tools/statistics/statistics.h"

namespace millrace::data {
namespace {

constexpr size_t most_different = 10'000, most_frequent = 10;
constexpr int64_t run = 4096;

/// How often each text or number is there, while they are few.
class Times {
 public:
  void add(std::string_view text) {
    if (many_) return;
    count_text(text, texts_);
    many_ = texts_.size() > most_different;
  }
  void add(int64_t bits) {
    if (many_) return;
    ++numbers_[bits];
    many_ = numbers_.size() > most_different;
  }

  void add(const Times& other) {
    many_ |= other.many_;
    for (const auto& [text, times] : other.texts_) texts_[text] += times;
    for (const auto& [bits, times] : other.numbers_) numbers_[bits] += times;
    many_ |= texts_.size() > most_different || numbers_.size() > most_different;
  }

  void finish(ColumnKind kind, ColumnStatistics& result) const {
    result.different = many_ ? -1 : static_cast<int64_t>(texts_.size() + numbers_.size());
    if (many_) return;
    std::map<std::string, int64_t> all(texts_.begin(), texts_.end());
    for (const auto& [bits, times] : numbers_)
      all[kind == ColumnKind::real ? value_text(std::bit_cast<double>(bits), kind) : std::to_string(bits)] +=
          times;
    result.frequent.assign(all.begin(), all.end());
    std::stable_sort(result.frequent.begin(), result.frequent.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    if (result.frequent.size() > most_frequent) result.frequent.resize(most_frequent);
  }

 private:
  TextMap<int64_t> texts_;
  std::unordered_map<int64_t, int64_t> numbers_;
  bool many_ = false;
};

/// Adds up one column, or a part of it.
class Sums {
 public:
  explicit Sums(ColumnKind kind) : kind_(kind) {}

  void add(const Value& value) {
    if (const auto* integer = std::get_if<int64_t>(&value))
      add(*integer);
    else if (const auto* real = std::get_if<double>(&value))
      add(*real);
    else if (const auto* text = std::get_if<std::string>(&value))
      add(std::string_view(*text));
    else if (const auto* bytes = std::get_if<Bytes>(&value))
      kind_ == ColumnKind::audio ? sound(bytes->view()) : content(bytes->size());
    else if (const auto* pixels = std::get_if<Pixels>(&value))
      content(pixels->bytes.size());
    else if (const auto* array = std::get_if<Array>(&value))
      content(static_cast<uint64_t>(array->bytes()));
    else
      ++result_.missing;
  }

  void add(const ColumnValues& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values.has(i))
        ++result_.missing;
      else if (values.kind == ColumnKind::integer)
        add(values.integers[i]);
      else if (values.kind == ColumnKind::real)
        add(values.reals[i]);
      else
        add(values.contents[i]);
    }
  }

  /// What a later part of the column has.
  void add(const Sums& later) {
    times_.add(later.times_);
    result_.missing += later.result_.missing;
    if (result_.bad == 0) result_.why = later.result_.why;
    result_.bad += later.result_.bad;
    result_.bytes += later.result_.bytes;
    if (later.contents_ > 0) {
      result_.shortest =
          contents_ ? std::min(result_.shortest, later.result_.shortest) : later.result_.shortest;
      result_.longest = std::max(result_.longest, later.result_.longest);
      contents_ += later.contents_;
    }
    if (later.numbers_ == 0) return;
    result_.least = numbers_ ? std::min(result_.least, later.result_.least) : later.result_.least;
    result_.most = numbers_ ? std::max(result_.most, later.result_.most) : later.result_.most;
    if (later.scale_ < scale_) scale_down();
    const double more = scale_ / later.scale_;
    const auto mine = static_cast<double>(numbers_), theirs = static_cast<double>(later.numbers_);
    const double apart = later.mean_ * more - mean_;
    mean_ += apart * theirs / (mine + theirs);
    squares_ += later.squares_ * more * more + apart * apart * mine * theirs / (mine + theirs);
    numbers_ += later.numbers_;
  }

  ColumnStatistics finish() {
    if (numbers_ > 0) {
      result_.mean = mean_ / scale_;
      result_.std = std::sqrt(squares_ / static_cast<double>(numbers_)) / scale_;
    }
    times_.finish(kind_, result_);
    return std::move(result_);
  }

 private:
  void add(int64_t integer) {
    number(static_cast<double>(integer));
    times_.add(integer);
  }
  void add(double real) {
    number(real);
    times_.add(std::bit_cast<int64_t>(real));
  }
  void sound(std::span<const uint8_t> bytes) {
    content(bytes.size());
    const std::string wrong = decode_sound(bytes, sound_);
    if (!wrong.empty()) {
      if (result_.bad++ == 0) result_.why = wrong;
      return;
    }
    number(sound_.seconds());
    times_.add(std::string_view(sound_kind(sound_.rate, sound_.channels)));
  }
  void add(std::string_view text) {
    if (kind_ == ColumnKind::audio)
      return sound({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    content(text.size());
    if (kind_ == ColumnKind::text) times_.add(text);
  }
  /// Welford's running mean and sum of squared differences.
  void number(double value) {
    if (!std::isfinite(value)) return;
    result_.least = numbers_ ? std::min(result_.least, value) : value;
    result_.most = numbers_ ? std::max(result_.most, value) : value;
    if (scale_ == 1 && std::abs(value) > 1e150) scale_down();
    const double scaled = value * scale_, before = scaled - mean_;
    mean_ += before / static_cast<double>(++numbers_);
    squares_ += before * (scaled - mean_);
  }
  /// Squares of large numbers are larger than any.
  void scale_down() {
    scale_ = 0x1p-600;
    mean_ *= scale_;
    squares_ = squares_ * scale_ * scale_;
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
  double mean_ = 0, squares_ = 0, scale_ = 1;  // of both, as if all numbers were scaled
  Times times_;
  Sound sound_;
};

std::vector<Sums> empty_sums(const Dataset& dataset) {
  std::vector<Sums> sums;
  for (const Column& column : dataset.columns()) sums.emplace_back(column.kind);
  return sums;
}

/// By runs, in parts whose number depends on the data alone; false when the format has none.
bool add_runs(const Dataset& dataset, const StatisticsOptions& options, std::vector<Sums>& sums) {
  std::vector<size_t> columns(dataset.columns().size());
  std::iota(columns.begin(), columns.end(), size_t{0});
  std::vector<ColumnValues> first;
  if (dataset.count() == 0 || !dataset.read_run(0, 1, columns, first)) return false;
  const int64_t part = std::max<int64_t>(16 * run, (dataset.count() + 63) / 64);
  const int64_t parts = (dataset.count() + part - 1) / part;
  std::vector<std::vector<Sums>> of_part(static_cast<size_t>(parts));
  parallel_for(parts, options.threads, [&](int64_t p) {
    std::vector<Sums>& mine = of_part[static_cast<size_t>(p)];
    mine = empty_sums(dataset);
    std::vector<ColumnValues> values;
    const int64_t end = std::min(dataset.count(), (p + 1) * part);
    for (int64_t i = p * part; i < end; i += run) {
      (void)dataset.read_run(i, std::min(run, end - i), columns, values);
      for (size_t c = 0; c < mine.size(); ++c) mine[c].add(values[c]);
    }
  });
  for (const auto& each : of_part)
    for (size_t c = 0; c < sums.size(); ++c) sums[c].add(each[c]);
  return true;
}

}  // namespace

std::vector<ColumnStatistics> column_statistics(const Dataset& dataset, const StatisticsOptions& options) {
  std::vector<Sums> sums = empty_sums(dataset);
  if (!add_runs(dataset, options, sums))
    for (int64_t i = 0; i < dataset.count(); ++i) {
      for (size_t c = 0; c < sums.size(); ++c) sums[c].add(dataset.read(i, c));
      if (options.progress && i % 1000 == 0) options.progress(i, dataset.count());
    }
  std::vector<ColumnStatistics> list;
  for (Sums& each : sums) list.push_back(each.finish());
  return list;
}

}  // namespace millrace::data

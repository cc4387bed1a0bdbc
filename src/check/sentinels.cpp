// Numbers that stand for a missing value.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/format.h"
#include "check/check.h"
#include "check/columns.h"
#include "check/context.h"

namespace millrace::check {
namespace {

/// As people write what is missing. Zeros are what sparse columns are full of.
bool may_stand_for_missing(double value) { return value == -1 || std::abs(value) >= 9; }

/// A value at an end of the column, there several times and far off all others; NaN: none.
double sentinel_of(const Column& column) {
  std::map<double, int64_t> times;
  int64_t all = 0;
  for (const double x : column.numbers)
    if (std::isfinite(x)) {
      ++times[x];
      ++all;
    }
  constexpr size_t least_values = 5;
  constexpr double far = 3;  // times the range of the others
  if (times.size() < least_values) return NAN;
  const auto lowest = times.begin(), highest = std::prev(times.end());
  const auto often = [&](auto at) {
    return may_stand_for_missing(at->first) && at->second >= std::max<int64_t>(3, all / 500);
  };
  const double low_range = highest->first - std::next(lowest)->first,
               high_range = std::prev(highest)->first - lowest->first;
  if (often(lowest) && std::next(lowest)->first - lowest->first > far * low_range) return lowest->first;
  if (often(highest) && highest->first - std::prev(highest)->first > far * high_range) return highest->first;
  return NAN;
}

Finding run_sentinels(Context& context) {
  if (!context.samples()) return not_for("no table to look at");
  const Columns table = read_table(context, *rows_of_samples(context, context.samples()));
  std::vector<std::string> found;
  int64_t looked = 0;
  for (const Column& column : table.columns) {
    if (!column.numeric || !column.input || column.target) continue;
    ++looked;
    const double value = sentinel_of(column);
    if (std::isnan(value)) continue;
    const auto count = std::count(column.numbers.begin(), column.numbers.end(), value);
    found.push_back(fmt::format("{} is {:.10g} in {} of the samples, far off all others", column.name, value,
                                share_text(static_cast<double>(count) /
                                           static_cast<double>(std::max<size_t>(1, column.numbers.size())))));
  }
  if (looked == 0) return not_for("inputs have no columns of numbers");
  return with_numbers(
      found.empty()
          ? passed(fmt::format("{} columns of numbers have no value far off all others", looked))
          : warned(
                fmt::format("{}{}", found[0],
                            found.size() > 1 ? fmt::format("; and {} more columns", found.size() - 1) : ""),
                context.samples()->format() == "csv"
                    ? "does it stand for a missing value? Then say so: data.missing"
                    : "does it stand for a missing value? Then leave these out where the data are written"),
      {{"columns", looked}, {"found", found.size()}});
}

}  // namespace

MILLRACE_CHECK_KIND(sentinels){
    .name = "sentinels",
    .doc = "numbers that stand for a missing value, such as -999",
    .matters =
        "taken as amounts they make all others nearly equal, and a model cannot tell missing from very small",
    .place = 115,
    .quick = true,
    .run = run_sentinels,
};

}  // namespace millrace::check

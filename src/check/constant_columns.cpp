// Columns that say nothing, or the same as others.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/format.h"
#include "check/check.h"
#include "check/columns.h"
#include "check/context.h"

namespace millrace::check {
namespace {

bool is_constant(const Column& column) {
  return std::all_of(column.codes.begin(), column.codes.end(),
                     [&](uint64_t code) { return code == column.codes[0]; });
}

/// Each value as the number of the sample where it stood first: the same where two columns name the same
/// things in other words.
std::vector<int64_t> pattern_of(const Column& column) {
  std::map<uint64_t, int64_t> first;
  std::vector<int64_t> pattern;
  pattern.reserve(column.codes.size());
  for (size_t i = 0; i < column.codes.size(); ++i)
    pattern.push_back(first.emplace(column.codes[i], static_cast<int64_t>(i)).first->second);
  // Where most differ, that says little: rows that stand there twice repeat the values of all columns.
  return 2 * first.size() > column.codes.size() ? std::vector<int64_t>() : pattern;
}

/// Numbers less their mean, in hundredths of their deviation and of one sign: the same in another unit.
std::vector<int64_t> scaled_of(const Column& column) {
  const Moments m = moments_of(column.numbers);
  std::vector<int64_t> scaled;
  if (m.deviation == 0) return scaled;
  double sign = 0;
  for (const double x : column.numbers) {
    const double z = (x - m.mean) / m.deviation;
    if (sign == 0 && std::abs(z) > 0.1) sign = z > 0 ? 1 : -1;
    scaled.push_back(std::isnan(z) ? std::numeric_limits<int64_t>::min()
                                   : std::llround(100 * z * (sign == 0 ? 1 : sign)));
  }
  return scaled;
}

/// What two columns that say the same have in common, marked by what it is.
std::vector<std::vector<int64_t>> signs_of(const Column& column) {
  std::vector<std::vector<int64_t>> signs;
  const auto add = [&](std::vector<int64_t> sign, int64_t what) {
    if (sign.empty()) return;
    sign.push_back(what);
    signs.push_back(std::move(sign));
  };
  add(pattern_of(column), 1);
  if (column.numeric) add(scaled_of(column), 2);
  if (!column.numeric) add({column.codes.begin(), column.codes.end()}, 3);
  return signs;
}

Finding run_constant_columns(Context& context) {
  if (!context.samples()) return not_for("no table to look at");
  const Columns table = read_table(context, *rows_of_samples(context, context.samples()));
  std::vector<std::string> constant, twins;
  std::map<std::vector<int64_t>, std::string> seen;
  int64_t inputs = 0;
  for (const Column& column : table.columns) {
    if (!column.input || column.codes.empty()) continue;
    ++inputs;
    if (is_constant(column)) {
      constant.push_back(column.name);
      continue;
    }
    std::string twin;
    for (std::vector<int64_t>& sign : signs_of(column))
      if (const auto [at, first] = seen.emplace(std::move(sign), column.name); !first) twin = at->second;
    if (!twin.empty()) twins.push_back(fmt::format("{} and {}", twin, column.name));
  }
  if (inputs < 2) return not_for("inputs have no columns of values");
  const Finding finding = [&] {
    if (!constant.empty() && std::ssize(constant) == inputs)
      return failed("all columns of the inputs are constant", "are these the right columns?");
    if (!constant.empty() || !twins.empty())
      return warned(
          fmt::format("{}{}{}",
                      constant.empty() ? "" : fmt::format("always the same: {}", fmt::join(constant, ", ")),
                      !constant.empty() && !twins.empty() ? "; " : "",
                      twins.empty() ? "" : fmt::format("say the same: {}", fmt::join(twins, ", "))),
          "leave them out (input.leave_out): they teach nothing, and importance is divided among twins");
    return passed(fmt::format("{} columns, none constant, no two that say the same", inputs));
  }();
  return with_numbers(finding, {{"constant", constant.size()}, {"duplicated", twins.size()}});
}

}  // namespace

MILLRACE_CHECK_KIND(constant_columns){
    .name = "constant-columns",
    .doc = "columns of inputs that are constant, or say the same as another",
    .matters = "they teach nothing, hide broken exports of data, and divide what a column is worth among two",
    .place = 110,
    .quick = true,
    .run = run_constant_columns,
};

}  // namespace millrace::check

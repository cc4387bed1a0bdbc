// Targets that belong to the rows before or behind theirs.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/format.h"
#include "check/check.h"
#include "check/columns.h"
#include "check/context.h"
#include "check/telltales.h"

namespace millrace::check {
namespace {

/// What is to be known, as classes; numbers as eighths of their order.
std::vector<int64_t> kinds_of(const Targets& targets) {
  if (!targets.classes.empty()) return targets.classes;
  constexpr int64_t parts = 8;
  const std::vector<double>& numbers = targets.numbers;
  std::vector<double> sorted;
  for (const double x : numbers)
    if (std::isfinite(x)) sorted.push_back(x);
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> kinds(numbers.size(), -1);
  for (size_t i = 0; i < kinds.size() && !sorted.empty(); ++i) {
    if (!std::isfinite(numbers[i])) continue;
    const auto below = std::lower_bound(sorted.begin(), sorted.end(), numbers[i]) - sorted.begin();
    kinds[i] = below * parts / std::ssize(sorted);
  }
  return kinds;
}

/// Of each row the kind of the row `lag` behind it.
std::vector<int64_t> moved(const std::vector<int64_t>& kinds, int64_t lag) {
  std::vector<int64_t> others(kinds.size(), -1);
  for (int64_t i = 0; i < std::ssize(kinds); ++i)
    if (i + lag >= 0 && i + lag < std::ssize(kinds))
      others[static_cast<size_t>(i)] = kinds[static_cast<size_t>(i + lag)];
  return others;
}

Finding run_shifted(Context& context) {
  if (!context.samples()) return not_for("no table to look at");
  const Targets targets = read_targets(context, context.samples());
  const std::vector<int64_t> kinds = kinds_of(targets);
  constexpr size_t least = 200;
  if (!targets.known() || kinds.size() < least)
    return not_for("no target of its own for each of enough samples");
  const Columns table = read_table(context, *context.samples());
  std::vector<std::vector<int64_t>> inputs;
  std::vector<std::string> names;
  constexpr size_t quantiles = 16;  // few, so that what a cell says of others is no chance
  for (const Column& column : table.columns) {
    if (!column.input || column.target || column.codes.size() != kinds.size()) continue;
    inputs.push_back(cells_of(column, quantiles));
    names.push_back(column.name);
  }
  if (inputs.empty()) return not_for("inputs have no columns of values");
  double own = 0, best = 0;
  int64_t where = 0;
  std::string name;
  for (const int64_t lag : {0, -1, 1, -2, 2}) {
    const std::vector<int64_t> others = lag == 0 ? kinds : moved(kinds, lag);
    for (size_t c = 0; c < inputs.size(); ++c) {
      const double told = told_of_classes(inputs[c], others);
      if (lag == 0) own = std::max(own, told);
      if (lag == 0 || told <= best) continue;
      best = told;
      where = lag;
      name = names[c];
    }
  }
  // Rows in the order of time or of their classes are like those beside them: then their own targets are told
  // as well.
  constexpr double least_told = 0.1, times = 3, chance = 0.02;
  return with_numbers(
      best > least_told && best > times * std::max(own, chance)
          ? warned(fmt::format("no column tells more than {} of a row's own target, but {} tells {} of the "
                               "target of the row {} {}",
                               share_text(own), name, share_text(std::min(best, 1.0)), std::abs(where),
                               where > 0 ? "behind it" : "before it"),
                   "were targets and inputs put together from two files, one of them with a header, a row "
                   "too many or another order? Join them by a key")
          : passed(fmt::format("rows tell their own targets ({}), not those of the rows beside them ({})",
                               share_text(own), share_text(best))),
      {{"own", own}, {"beside", best}});
}

}  // namespace

MILLRACE_CHECK_KIND(shifted_targets){
    .name = "shifted-targets",
    .doc = "targets that are those of the rows before or behind theirs",
    .matters =
        "a model learns nothing from inputs that are not those of its targets, and the test set says so "
        "too late, or is moved in the same way and does not",
    .place = 125,
    .quick = true,
    .run = run_shifted,
};

}  // namespace millrace::check

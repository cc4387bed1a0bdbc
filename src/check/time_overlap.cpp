// Times of which one part is trained on, and another tested on.
#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "base/format.h"
#include "check/check.h"
#include "check/columns.h"
#include "check/context.h"
#include "data/table/dates.h"
#include "data/table/split.h"

namespace millrace::check {
namespace {

/// Where both sets are parts of one, by a rule that knows nothing of groups.
bool divided_at_random(const task::Recipe& recipe) {
  if (!recipe.data.test.empty() || recipe.data.test_share == 0) return false;
  using How = data::SplitBy::How;
  const How how = data::SplitBy::parse(recipe.data.test_by).how;
  return how == How::random || how == How::stratified;
}

/// Whole numbers that all are seconds, or thousandths, since 1970 of the years 2000 to 2035, and differ.
bool counts_seconds(const std::vector<double>& numbers) {
  constexpr double first = 946'684'800, last = 2'051'222'400, day = 86'400;
  const Moments m = moments_of(numbers);
  const double unit = m.least > 1e11 ? 1e3 : 1;
  return m.count > 0 && m.least >= unit * first && m.most <= unit * last && m.most - m.least > unit * day;
}

/// A column of dates as days; empty where it is none.
std::vector<double> days_of(const data::Dataset& from, const Column& column) {
  std::vector<double> days;
  if (column.numeric) {
    // Not a duration or when something was made: "time_in_hospital", "year_built".
    const bool named = named_like(column.name, {"date", "time", "timestamp", "year", "datetime"},
                                  {"event", "order", "sale", "purchase", "visit", "created", "updated",
                                   "recorded", "observed", "start", "end", "utc", "unix", "epoch", "ms"});
    return named || (column.integer && counts_seconds(column.numbers)) ? column.numbers : days;
  }
  const size_t place = from.column(column.name);
  const int64_t count = std::min<int64_t>(from.count(), 4000);
  std::vector<double> month_first;
  for (int64_t k = 0; k < count; ++k) {
    const data::Value value = from.read(k * from.count() / count, place);
    const auto* text = std::get_if<std::string>(&value);
    if (!text) continue;
    if (const auto day = data::parse_date(*text, data::DateOrder::day_first)) days.push_back(*day);
    if (const auto day = data::parse_date(*text, data::DateOrder::month_first)) month_first.push_back(*day);
    if (k == 20 && days.size() < 15 && month_first.size() < 15) return {};
  }
  if (month_first.size() > days.size()) days = std::move(month_first);
  return 2 * std::ssize(days) > count ? days : std::vector<double>();
}

Finding run_time_overlap(Context& context) {
  if (!context.samples() || !context.test_samples())
    return not_for("there is no test set beside samples to train on");
  const data::Dataset &trained = *context.samples(), &tested = *context.test_samples();
  const Columns table = read_table(context, trained, 4000), tests = read_table(context, tested, 4000);
  // A column of dates says more than one that is called like a time.
  std::vector<Column> columns = table.columns;
  std::stable_partition(columns.begin(), columns.end(), [](const Column& column) { return !column.numeric; });
  for (const Column& column : columns) {
    const Column* other = find_column(tests, column.name);
    if (column.target || !other) continue;
    const std::vector<double> before = days_of(trained, column), after = days_of(tested, *other);
    const Moments m = moments_of(before), t = moments_of(after);
    if (m.count < 20 || t.count < 5 || m.deviation == 0) continue;
    int64_t later = 0;  // samples of training that are newer than the middle of those to test on
    for (const double day : before) later += day > t.mean;
    const double share = static_cast<double>(later) / static_cast<double>(m.count);
    const std::string saw =
        fmt::format("{} of the samples to train on are newer, by {}, than the mean of those to test on",
                    share_text(share), column.name);
    return with_numbers(
        share > 0.05
            ? warned(saw,
                     fmt::format(
                         "where the model is to predict what comes, test on the newest{}: data.test_by = "
                         "\"time:{}\"",
                         divided_at_random(context.task()->recipe) ? "" : " (the files overlap in time)",
                         column.name))
            : passed(saw),
        {{"newer_in_training", share}});
  }
  return not_for("no column is a date or called like a time");
}

}  // namespace

MILLRACE_CHECK_KIND(time_overlap){
    .name = "time-overlap",
    .doc = "samples to train on that are newer than those to test on",
    .matters = "a model that knows the future of its test set looks better than one that must predict it",
    .place = 150,
    .quick = true,
    .run = run_time_overlap,
};

}  // namespace millrace::check

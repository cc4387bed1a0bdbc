// Statistics that were taken of more than the training data.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/format.h"
#include "check/check.h"
#include "check/columns.h"
#include "check/context.h"

namespace millrace::check {
namespace {

std::vector<double> joined(const std::vector<double>& one, const std::vector<double>& other) {
  std::vector<double> all = one;
  all.insert(all.end(), other.begin(), other.end());
  return all;
}

/// A value that stands there often and is the mean of the others: what was filled in for missing ones. NaN:
/// none. `others`: where the mean is looked for.
bool is_filled_with_mean(const std::vector<double>& training, const std::vector<double>& all) {
  std::map<double, int64_t> times;
  for (const double x : training)
    if (std::isfinite(x)) ++times[x];
  if (times.size() < 20) return false;
  const auto most =
      std::max_element(times.begin(), times.end(), [](auto& a, auto& b) { return a.second < b.second; });
  if (most->second < static_cast<int64_t>(training.size() / 100) || most->second < 5) return false;
  const auto mean_without = [&](const std::vector<double>& of) {
    std::vector<double> rest;
    for (const double x : of)
      if (x != most->first) rest.push_back(x);
    return moments_of(rest);
  };
  const Moments own = mean_without(training), whole = mean_without(all);
  const double close = 1e-6 * whole.deviation;
  return std::abs(most->first - whole.mean) < close && std::abs(most->first - own.mean) > 100 * close;
}

/// How a column was made of statistics of both sets; "" where it was not.
std::string fitted_on_both(const std::vector<double>& training, const std::vector<double>& tests) {
  const std::vector<double> all = joined(training, tests);
  const Moments own = moments_of(training), whole = moments_of(all);
  if (own.count < 20 || whole.count == own.count || own.deviation == 0) return {};
  constexpr double exact = 1e-5;
  const auto n = static_cast<double>(whole.count);
  const double unbiased = whole.deviation * std::sqrt(n / (n - 1));
  const bool standard = std::abs(whole.mean) < exact &&
                        (std::abs(whole.deviation - 1) < exact || std::abs(unbiased - 1) < exact);
  const bool own_standard = std::abs(own.mean) < 10 * exact && std::abs(own.deviation - 1) < 10 * exact;
  if (standard && !own_standard)
    return fmt::format("has mean {} and deviation {} over both sets, {} and {} over training alone",
                       short_number(whole.mean), short_number(whole.deviation), short_number(own.mean),
                       short_number(own.deviation));
  if (whole.least == 0 && whole.most == 1 && (own.least > 0 || own.most < 1) && own.count > 20) {
    int64_t between = 0;
    for (const double x : all) between += x > 0 && x < 1;
    if (between > static_cast<int64_t>(all.size() / 2))
      return fmt::format("reaches from 0 to 1 over both sets, from {} to {} over training alone",
                         short_number(own.least), short_number(own.most));
  }
  if (is_filled_with_mean(training, all)) return "was filled up with the mean of both sets";
  return {};
}

Finding run_fitted_statistics(Context& context) {
  if (!context.samples()) return not_for("no data: a model of C++, or a stream");
  if (!context.test_samples()) return not_for("there is no test set");
  // Statistics of all are only seen in all.
  constexpr int64_t all = 1 << 20;
  const int64_t most = context.quick() ? 50'000 : all;
  const Columns training = read_table(context, *rows_of_samples(context, context.samples()), most),
                tests = read_table(context, *rows_of_samples(context, context.test_samples()), most);
  std::vector<std::string> found;
  int64_t looked = 0;
  for (const Column& column : training.columns) {
    const Column* other = find_column(tests, column.name);
    if (!column.numeric || !column.input || !other || !other->numeric) continue;
    ++looked;
    if (const std::string how = fitted_on_both(column.numbers, other->numbers); !how.empty())
      found.push_back(fmt::format("{} {}", column.name, how));
  }
  return with_numbers(
      !found.empty()
          ? failed(
                fmt::format("{}{}", found[0],
                            found.size() > 1 ? fmt::format("; and {} more columns", found.size() - 1) : ""),
                "give the columns as they were measured: what is learnt of them is learnt of the training "
                "part alone, and is part of the model")
          : passed(looked
                       ? fmt::format("{} columns of numbers bear no statistics of both sets; what the recipe "
                                     "learns, it learns of {} {} to train on",
                                     looked, context.samples()->count(), context.task()->unit())
                       : fmt::format("what the recipe learns, it learns of {} {} to train on",
                                     context.samples()->count(), context.task()->unit())),
      {{"columns", looked}, {"fitted", found.size()}});
}

}  // namespace

MILLRACE_CHECK_KIND(fitted_statistics){
    .name = "fitted-statistics",
    .doc = "columns that were scaled or filled up with statistics of training and test set together",
    .matters =
        "the test set has then had a say in what the model is given: small sets look better than they are, "
        "and new data cannot be scaled the same way",
    .place = 160,
    .quick = true,
    .run = run_fitted_statistics,
};

}  // namespace millrace::check

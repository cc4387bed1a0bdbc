// A single column that gives the target away.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/format.h"
#include "check/check.h"
#include "check/columns.h"
#include "check/context.h"

namespace millrace::check {
namespace {

/// Cells that a column's values fall into: of numbers with many values 64 quantiles, else the values.
std::vector<int64_t> cells_of(const Column& column) {
  constexpr size_t quantiles = 64;
  std::map<uint64_t, int64_t> values;
  for (const uint64_t code : column.codes) values.emplace(code, std::ssize(values));
  std::vector<int64_t> cells(column.codes.size());
  if (!column.numeric || values.size() <= 2 * quantiles) {
    for (size_t i = 0; i < cells.size(); ++i) cells[i] = values[column.codes[i]];
    return cells;
  }
  std::vector<double> sorted;
  for (const double x : column.numbers)
    if (!std::isnan(x)) sorted.push_back(x);
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> ends;
  for (size_t q = 1; q < quantiles; ++q) ends.push_back(sorted[q * sorted.size() / quantiles]);
  for (size_t i = 0; i < cells.size(); ++i)
    cells[i] = std::isnan(column.numbers[i])
                   ? -1
                   : std::upper_bound(ends.begin(), ends.end(), column.numbers[i]) - ends.begin();
  return cells;
}

/// How much of what is to be known the cell tells, on samples that it was not learnt from (every other one):
/// 0: no more than the most frequent class, 1: all.
double told_of_classes(const std::vector<int64_t>& cells, const Targets& targets) {
  std::map<int64_t, std::map<int64_t, int64_t>> counts;
  std::map<int64_t, int64_t> all;
  for (size_t i = 0; i < cells.size(); i += 2)
    if (targets.classes[i] >= 0) {
      ++counts[cells[i]][targets.classes[i]];
      ++all[targets.classes[i]];
    }
  const auto most = [](const std::map<int64_t, int64_t>& of) {
    return std::max_element(of.begin(), of.end(), [](auto& a, auto& b) { return a.second < b.second; })
        ->first;
  };
  if (all.size() < 2) return 0;
  const int64_t usual = most(all);
  double right = 0, base = 0, count = 0;
  for (size_t i = 1; i < cells.size(); i += 2) {
    if (targets.classes[i] < 0) continue;
    const auto at = counts.find(cells[i]);
    right += (at == counts.end() ? usual : most(at->second)) == targets.classes[i];
    base += usual == targets.classes[i];
    ++count;
  }
  return count > base ? (right - base) / (count - base) : 0;
}

double told_of_numbers(const Column& column, const std::vector<int64_t>& cells, const Targets& targets) {
  std::map<int64_t, std::vector<double>> sums;  // of a line in each cell: n, x, y, xx, xy
  const auto x_of = [&](size_t i) {
    return column.numeric && !std::isnan(column.numbers[i]) ? column.numbers[i] : 0.0;
  };
  for (size_t i = 0; i < cells.size(); i += 2) {
    auto& s = sums[cells[i]];
    s.resize(5);
    const double x = x_of(i), y = targets.numbers[i];
    if (std::isnan(y)) continue;
    s[0] += 1;
    s[1] += x;
    s[2] += y;
    s[3] += x * x;
    s[4] += x * y;
  }
  const Moments m = moments_of(targets.numbers);
  double errors = 0, squares = 0;
  for (size_t i = 1; i < cells.size(); i += 2) {
    const double y = targets.numbers[i];
    if (std::isnan(y)) continue;
    const auto at = sums.find(cells[i]);
    double guess = m.mean;
    if (at != sums.end() && at->second[0] > 0) {
      const auto& s = at->second;
      const double spread = s[3] - s[1] * s[1] / s[0],
                   slope = spread > 1e-9 * std::abs(s[3]) ? (s[4] - s[1] * s[2] / s[0]) / spread : 0;
      guess = s[2] / s[0] + slope * (x_of(i) - s[1] / s[0]);
    }
    errors += (y - guess) * (y - guess);
    squares += (y - m.mean) * (y - m.mean);
  }
  return squares > 0 ? 1 - errors / squares : 0;
}

Finding run_giveaway(Context& context) {
  if (!context.task() || !context.training()->samples) return not_for("no table to look at");
  const Columns table = read_table(context, *context.training()->samples);
  const Targets targets = read_targets(context, context.training()->samples);
  const size_t count = targets.classes.empty() ? targets.numbers.size() : targets.classes.size();
  if (!targets.known() || count < 50) return not_for("no target of its own for each of enough samples");
  double best = 0;
  std::string name;
  int64_t inputs = 0;
  for (const Column& column : table.columns) {
    if (!column.input || column.target || column.codes.size() != count) continue;
    ++inputs;
    const std::vector<int64_t> cells = cells_of(column);
    const double told =
        targets.classes.empty() ? told_of_numbers(column, cells, targets) : told_of_classes(cells, targets);
    if (told <= best) continue;
    best = told;
    name = column.name;
  }
  if (inputs == 0) return not_for("inputs have no columns of values");
  const std::string saw = name.empty()
                              ? fmt::format("none of {} columns alone tells anything", inputs)
                              : fmt::format("of {} columns {} alone tells most: {} of what is to be known",
                                            inputs, name, share_text(std::min(best, 1.0)));
  constexpr const char* advice =
      "is it known when a prediction is made, or was it written down after the outcome, or made from it? "
      "Then "
      "leave it out (input.leave_out)";
  Finding finding = best > 0.98 ? failed(saw, advice) : best > 0.9 ? warned(saw, advice) : passed(saw);
  finding.numbers = {{"told", best}};
  return finding;
}

}  // namespace

MILLRACE_CHECK_KIND(giveaway){
    .name = "giveaway",
    .group = "data",
    .doc = "a single column of the inputs from which the target can be read off",
    .matters =
        "what was written down after the outcome, or made from it, is not there when the model is to predict",
    .place = 120,
    .quick = true,
    .run = run_giveaway,
};

}  // namespace millrace::check

// A single column that gives the target away.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/format.h"
#include "check/check.h"
#include "check/columns.h"
#include "check/context.h"
#include "check/telltales.h"

namespace millrace::check {
namespace {

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

/// How two columns make the target, such as "net + tax"; "" where none do. Numbers that were rounded may
/// differ by a little.
std::string made_of_two(const Columns& table, const Targets& targets) {
  constexpr size_t most_columns = 40, most_rows = 1000;
  std::vector<const Column*> numbers;
  for (const Column& column : table.columns)
    if (column.input && !column.target && column.numeric && column.numbers.size() == targets.numbers.size() &&
        numbers.size() < most_columns)
      numbers.push_back(&column);
  const double allowed = 1e-3 * moments_of(targets.numbers).deviation;
  const size_t step = std::max<size_t>(1, targets.numbers.size() / most_rows);
  using Rule = double (*)(double, double);
  static constexpr std::pair<const char*, Rule> rules[] = {
      {"+", [](double a, double b) { return a + b; }},
      {"-", [](double a, double b) { return a - b; }},
      {"·", [](double a, double b) { return a * b; }},
      {"/", [](double a, double b) { return a / b; }},
  };
  const auto holds = [&](const Column& a, const Column& b, Rule rule) {
    size_t right = 0, asked = 0;
    for (size_t i = 0; i < targets.numbers.size(); i += step) {
      const double y = targets.numbers[i], made = rule(a.numbers[i], b.numbers[i]);
      if (!std::isfinite(y)) continue;
      ++asked;
      right += std::isfinite(made) && std::abs(made - y) <= allowed ? 1 : 0;
      // A rule that does not hold is left early.
      if (asked - right > 3 && 10 * right < 9 * asked) return false;
    }
    return asked > 0 && 50 * right >= 49 * asked;
  };
  for (const Column* a : numbers)
    for (const Column* b : numbers)
      for (const auto& [sign, rule] : rules)
        if (a != b && holds(*a, *b, rule)) return fmt::format("{} {} {}", a->name, sign, b->name);
  return {};
}

Finding judge_columns(Context& context, const Targets& targets, size_t count) {
  const Columns table = read_table(context, *context.samples());
  double best = 0;
  std::string name;
  int64_t inputs = 0;
  for (const Column& column : table.columns) {
    if (!column.input || column.target || column.codes.size() != count) continue;
    ++inputs;
    // A line in a cell is learnt from some twenty samples.
    constexpr size_t each = 40;
    const std::vector<int64_t> cells = targets.classes.empty()
                                           ? cells_of(column, std::clamp<size_t>(count / each, 2, 64))
                                           : cells_of(column);
    const double told = targets.classes.empty() ? told_of_numbers(column, cells, targets)
                                                : told_of_classes(cells, targets.classes);
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
      "Then leave it out (input.leave_out)";
  Finding finding = best > 0.98 ? failed(saw, advice) : best > 0.9 ? warned(saw, advice) : passed(saw);
  if (targets.classes.empty() && finding.verdict == Verdict::pass)
    if (const std::string made = made_of_two(table, targets); !made.empty())
      finding = failed(fmt::format("{} is {}", targets.column, made), advice);
  return with_numbers(finding, {{"told", best}});
}

/// Something about contents that tells nearly all: what it is, and what to do. It may be what there is to
/// learn, so files only warn.
Finding judge_telltale(const Telltale& found, bool fails, const char* advice) {
  const std::string saw = found.what.empty() ? fmt::format("no {} alone tells anything", found.kind)
                                             : fmt::format("{} alone tells {} of what is to be known",
                                                           found.what, share_text(std::min(found.told, 1.0)));
  return with_numbers(found.told > 0.98 && fails ? failed(saw, advice)
                      : found.told > 0.9         ? warned(saw, advice)
                                                 : passed(saw),
                      {{"told", found.told}});
}

/// Of one output.
Finding judge_target(Context& context, const Targets& targets) {
  const size_t count = targets.classes.empty() ? targets.numbers.size() : targets.classes.size();
  if (count < 50) return not_for("no target of its own for each of enough samples");
  Finding finding = judge_columns(context, targets, count);
  if (targets.classes.empty()) return finding;
  const auto add = [&](const Finding& more) {
    finding = finding.verdict == Verdict::does_not_apply ? more : worse(finding, more);
  };
  for (const auto& input : context.task()->inputs) {
    const bool texts = input->gives() == "tokens" && !input->cuts();
    if (texts)
      add(judge_telltale(telling_words(context, *input, targets), true,
                         "was it put into the texts by who labelled or collected them? Then take it out: "
                         "new texts do not have it"));
    if (texts || input->gives() == "table" || context.quick()) continue;
    add(judge_telltale(telling_file(context, targets), false,
                       "were the files of the classes made in different ways (cameras, programs, lengths)? A "
                       "model may learn that instead: bring them to one form, or take classes from the same "
                       "sources"));
    if (input->gives() == "picture")
      add(judge_telltale(telling_place(context, *input, targets), false,
                         "is there a stamp, a mark or a border that only pictures of this class have? Cut it "
                         "off, or paint it over in all"));
  }
  return finding;
}

Finding run_giveaway(Context& context) {
  if (!context.samples()) return not_for("no table to look at");
  const std::vector<Targets> all = read_all_targets(context, context.samples());
  Finding finding = not_for("no target of its own for each of enough samples");
  for (const Targets& each : all) {
    Finding own = judge_target(context, each);
    if (all.size() > 1) own.saw = fmt::format("{}: {}", task::output_key(each.output->section()), own.saw);
    finding = &each == &all[0] ? std::move(own) : worse(std::move(finding), own);
  }
  return finding;
}

}  // namespace

MILLRACE_CHECK_KIND(giveaway){
    .name = "giveaway",
    .doc = "a single column, word, mark or kind of file from which the target can be read off",
    .matters =
        "what was written down after the outcome, or made from it, is not there when the model is to predict",
    .place = 120,
    .quick = true,
    .run = run_giveaway,
};

}  // namespace millrace::check

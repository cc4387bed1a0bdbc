// The user's own rule: what would be done without a model.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/suggest.h"
#include "baseline/context.h"
#include "baseline/rules.h"
#include "data/table/formula.h"

namespace millrace::baseline {
namespace {

constexpr const char* key = "baseline.heuristic";

/// The rules with a class for each: of two classes a condition alone tells the second one.
std::vector<Rule> class_rules(const std::string& text, const std::vector<std::string>& classes,
                              std::vector<int64_t>& of_rule) {
  const auto class_of = [&](const std::string& value) -> int64_t {
    const auto at = std::find(classes.begin(), classes.end(), unquoted(value));
    return at == classes.end() ? -1 : at - classes.begin();
  };
  std::vector<Rule> rules = parse_rules(text);
  if (rules.size() == 1 && !rules[0].condition && class_of(rules[0].value) < 0 && classes.size() == 2) {
    of_rule = {1, 0};
    return {{data::Query::parse(rules[0].value), classes[1]}, {std::nullopt, classes[0]}};
  }
  for (const Rule& rule : rules) {
    of_rule.push_back(class_of(rule.value));
    if (of_rule.back() < 0)
      fail<InputError>("'{}' is none of the classes{} ({})", unquoted(rule.value),
                       did_you_mean(unquoted(rule.value), classes), fmt::join(classes, ", "));
  }
  return rules;
}

std::vector<int64_t> told_by(const std::vector<Rule>& rules, const std::vector<int64_t>& of_rule,
                             const data::Dataset& from) {
  std::vector<int64_t> told = rule_of_each(rules, from);
  for (int64_t& each : told)
    if (each >= 0) each = of_rule[static_cast<size_t>(each)];
  return told;
}

std::vector<float> class_logits(Context& context, const std::string& text) {
  std::vector<int64_t> of_rule;
  const std::vector<Rule> rules = class_rules(text, context.task().outputs[0]->classes(), of_rule);
  return context.logits_of_answers(0, told_by(rules, of_rule, *context.samples(false)),
                                   told_by(rules, of_rule, *context.samples(true)));
}

/// What no rule tells a number of is the mean of training.
std::vector<float> number_logits(Context& context, const std::string& text, int64_t& untold) {
  const data::Dataset& from = *context.samples(true);
  const std::vector<Rule> rules = parse_rules(text);
  const std::vector<int64_t> first = rule_of_each(rules, from);
  std::vector<std::vector<double>> values;
  for (const Rule& rule : rules) values.push_back(data::formula_values(rule.value, from));
  const auto [shift, scale] = context.unit_of(0, 0);
  std::vector<float> logits(first.size());
  const PartRows& rows = context.targets(0, false);
  const Array& array = rows.arrays[0];
  double mean = 0;
  for (const float target : array.as<float>())
    mean += static_cast<double>(target) / static_cast<double>(array.count());
  for (size_t i = 0; i < first.size(); ++i) {
    const double value = first[i] < 0 ? NAN : values[static_cast<size_t>(first[i])][i];
    if (!std::isfinite(value)) ++untold;
    logits[i] = static_cast<float>(std::isfinite(value) ? (value - shift) / scale : mean);
  }
  return logits;
}

Result run_heuristic(Context& context) {
  const std::string& text = context.recipe().baseline.heuristic;
  if (text.empty()) return not_for("the recipe names none (baseline.heuristic)");
  const task::Task& task = context.task();
  const task::Output& output = *task.outputs[0];
  const bool numbers = output.link() == eval::Link::none && output.width() == 1;
  if (task.outputs.size() > 1 || output.from() || !(numbers || has_classes(output)))
    return not_for("rules are for a recipe that predicts one class or one number");
  Result result;
  try {
    int64_t untold = 0;
    const std::vector<float> logits =
        numbers ? number_logits(context, text, untold) : class_logits(context, text);
    result.metrics = context.judged({logits});
    if (untold > 0)
      result.note = fmt::format("the mean for {} samples that no rule gives a number for", untold);
  } catch (const InputError& error) {
    fail<InputError>("{}: {}", key, error.what());
  }
  return result;
}

}  // namespace

MILLRACE_BASELINE(heuristic){
    .name = "heuristic",
    .doc = "your own rule: baseline.heuristic",
    .place = 20,
    .run = run_heuristic,
};

}  // namespace millrace::baseline

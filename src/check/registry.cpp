#include <chrono>
#include <string_view>

#include "base/contains.h"
#include "base/format.h"
#include "base/seconds_since.h"
#include "base/utf8.h"
#include "check/check.h"
#include "check/context.h"

namespace millrace::check {

#include "generated/checks.inc"

Registry<CheckKind>& check_kinds() {
  static Registry<CheckKind> kinds("check", {MILLRACE_FOUND_CHECKS});
  return kinds;
}

const char* verdict_name(Verdict verdict) {
  static constexpr const char* names[] = {"pass", "warn", "fail", "does-not-apply"};
  return names[static_cast<size_t>(verdict)];
}

Finding passed(std::string saw) { return {.verdict = Verdict::pass, .saw = std::move(saw)}; }
Finding warned(std::string saw, std::string advice) {
  return {.verdict = Verdict::warn, .saw = std::move(saw), .advice = std::move(advice)};
}
Finding failed(std::string saw, std::string advice) {
  return {.verdict = Verdict::fail, .saw = std::move(saw), .advice = std::move(advice)};
}
Finding not_for(std::string why) { return {.verdict = Verdict::does_not_apply, .saw = std::move(why)}; }

Finding with_numbers(Finding finding, std::initializer_list<Number> numbers) {
  finding.numbers.clear();
  for (const Number& number : numbers) finding.numbers.emplace_back(number.name, number.value);
  return finding;
}

Finding worse(Finding one, const Finding& other) {
  const auto rank = [](Verdict v) { return v == Verdict::does_not_apply ? -1 : static_cast<int>(v); };
  Finding result = rank(other.verdict) > rank(one.verdict) ? other : one;
  if (one.verdict == other.verdict) {
    result.saw += "; " + other.saw;
    if (!other.advice.empty() && other.advice != one.advice)
      result.advice += (result.advice.empty() ? "" : "; ") + other.advice;
  }
  for (const auto& number : (rank(other.verdict) > rank(one.verdict) ? one : other).numbers)
    result.numbers.push_back(number);
  return result;
}

std::vector<Kind> kinds() {
  std::vector<Kind> list;
  for (const CheckKind* kind : check_kinds().all())
    list.push_back({kind->name, kind->group(), kind->doc, kind->matters});
  return list;
}

namespace {

std::vector<const CheckKind*> chosen_checks(const Options& options) {
  std::vector<const CheckKind*> chosen;
  for (const std::string& name : options.only) (void)check_kinds().at(name);
  for (const CheckKind* kind : check_kinds().all()) {
    if (options.only.empty() ? !options.quick || kind->quick : contains(options.only, kind->name))
      chosen.push_back(kind);
  }
  return chosen;
}

}  // namespace

std::vector<Finding> run_checks(Context& context, const Options& options) {
  const auto chosen = chosen_checks(options);
  std::vector<Finding> findings;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const CheckKind& kind = *chosen[i];
    if (options.progress) options.progress(kind.name, static_cast<int64_t>(i), std::ssize(chosen));
    const auto begin = std::chrono::steady_clock::now();
    Finding finding;
    try {
      finding = context.fitted() && std::string_view(kind.group()) != "data"
                    ? not_for("the model is fitted to all samples at once, it has no steps")
                    : kind.run(context);
    } catch (const Error& error) {
      finding = failed(error.what(), "mend what this message names; a training would stop at it, too");
    }
    context.reset();
    finding.check = kind.name;
    // Names of classes and samples come from files, in whatever bytes.
    finding.saw = printable(stored_text(finding.saw));
    finding.group = kind.group();
    finding.matters = kind.matters;
    finding.seconds = seconds_since(begin);
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<Finding> quick_checks(const task::Task& task, const task::TaskFeed& training,
                                  const task::TaskFeed& tests) {
  // Of sets as large as that even the labels alone take longer.
  constexpr int64_t most = 200'000;
  if (!training.samples || training.samples->count() > most) return {};
  Context context(task, training, tests);
  return run_checks(context, {.quick = true});
}

std::vector<Finding> check(const task::Recipe& recipe, const Options& options) {
  (void)chosen_checks(options);  // names are wrong before data are read
  task::check_recipe(recipe, "the recipe");
  Context context(recipe, options);
  return run_checks(context, options);
}

std::vector<Finding> check(const Subject& subject, const Options& options) {
  Context context(subject);
  return run_checks(context, options);
}

}  // namespace millrace::check

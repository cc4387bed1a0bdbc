#include <algorithm>
#include <fmt/core.h>
#include <unistd.h>

#include <millrace/check.h>

#include "base/format.h"
#include "base/seconds_since.h"
#include "base/words.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "train/run_folder.h"

namespace millrace::cli {
namespace {

using check::Finding;
using check::Verdict;

struct CheckArguments {
  std::string recipe, only;
  std::vector<std::string> overrides;
  bool json = false, list = false;
};

int list_checks(bool json) {
  std::vector<Json> all;
  std::string group;
  for (const check::Kind& kind : check::kinds()) {
    if (json) {
      all.push_back(json_object(
          {{"check", kind.name}, {"group", kind.group}, {"doc", kind.doc}, {"matters", kind.matters}}));
      continue;
    }
    if (kind.group != group) fmt::print("{}{}:\n", group.empty() ? "" : "\n", kind.group);
    group = kind.group;
    fmt::print("  {:<24} {}\n", kind.name, kind.doc);
  }
  if (json) print_json(all);
  return 0;
}

std::string word_of(Verdict verdict, bool colours) {
  const char* const word = verdict == Verdict::does_not_apply ? "–" : check::verdict_name(verdict);
  const char* const colour = verdict == Verdict::fail   ? "\033[1;31m"
                             : verdict == Verdict::warn ? "\033[33m"
                             : verdict == Verdict::pass ? "\033[32m"
                                                        : "\033[2m";
  const std::string padded = fmt::format("{:<4}", word);
  return colours ? fmt::format("{}{}\033[0m", colour, padded) : padded;
}

Json findings_json(const std::vector<Finding>& findings) {
  std::vector<Json> all;
  for (const Finding& each : findings)
    all.push_back(json_object({{"check", each.check},
                               {"group", each.group},
                               {"verdict", check::verdict_name(each.verdict)},
                               {"saw", each.saw},
                               {"matters", each.matters},
                               {"advice", each.advice},
                               {"numbers", json_object(each.numbers)},
                               {"seconds", each.seconds}}));
  return {all};
}

/// A line for each check, and under those that warn or fail why it matters and what to do.
void print_findings(const std::vector<Finding>& findings, bool colours) {
  size_t width = 0;
  for (const Finding& each : findings) width = std::max(width, each.check.size());
  std::string group;
  for (const Finding& each : findings) {
    if (each.group != group) fmt::print("{}\n", each.group);
    group = each.group;
    fmt::print("  {} {:<{}}  {}\n", word_of(each.verdict, colours), each.check, width, each.saw);
    if (each.verdict != Verdict::warn && each.verdict != Verdict::fail) continue;
    fmt::print("       {:<{}}  why:  {}\n", "", width, each.matters);
    fmt::print("       {:<{}}  do:   {}\n", "", width, each.advice);
  }
}

int64_t count_of(const std::vector<Finding>& findings, Verdict verdict) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& each) { return each.verdict == verdict; });
}

int run_check(const CheckArguments& a) {
  if (a.list) return list_checks(a.json);
  if (a.recipe.empty()) fail<InputError>("which recipe? millrace check RECIPE, or --list for the checks");
  check::Options options;
  options.only = split_list(a.only);
  const auto begin = std::chrono::steady_clock::now();
  Progress progress(stderr);
  options.progress = [&](const std::string& what, int64_t done, int64_t total) {
    constexpr double silent = 2;
    if (!a.json && seconds_since(begin) > silent) progress.count(what + ": ", done, total);
  };
  const std::vector<Finding> findings = check::check(train::recipe_of(a.recipe, a.overrides), options);
  progress.finish();
  const int64_t failures = count_of(findings, Verdict::fail), warnings = count_of(findings, Verdict::warn);
  if (a.json) {
    print_json(json_object({{"recipe", a.recipe},
                            {"checks", findings_json(findings)},
                            {"failed", failures},
                            {"warned", warnings},
                            {"seconds", seconds_since(begin)}}));
  } else {
    print_findings(findings, ::isatty(STDOUT_FILENO) != 0);
    fmt::print("{}: {} passed, {} warned, {} failed, {} do not apply, in {:.1f} s\n", a.recipe,
               count_of(findings, Verdict::pass), warnings, failures,
               count_of(findings, Verdict::does_not_apply), seconds_since(begin));
  }
  return failures > 0 ? 1 : 0;
}

Action declare_check(Command& command) {
  auto a = std::make_shared<CheckArguments>();
  command.positional("RECIPE", a->recipe, "a TOML recipe", false)
      .positional("KEY=VALUE", a->overrides, "changes of the recipe, as of millrace train", false)
      .option("--only", a->only, "these checks, their names with commas between them")
      .flag("--list", a->list, "name the checks and what each looks for")
      .flag("--json", a->json, "print one JSON object")
      .footer(
          "Looks at a recipe's data, model and loop before they cost hours. Nothing is written. Exit code 1 "
          "when a check fails.\n\n"
          "  millrace check examples/letters.toml\n"
          "  millrace check examples/cifar10.toml --only batch-leakage,initial-loss\n"
          "  millrace check --list\n");
  return [a] { return run_check(*a); };
}

}  // namespace

MILLRACE_VERB(check){"check", "look for mistakes in data, model and loop before training", declare_check, 45};

}  // namespace millrace::cli

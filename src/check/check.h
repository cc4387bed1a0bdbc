// Checks before a training: each is one file here with MILLRACE_CHECK_KIND(name){…}.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <millrace/check.h>

#include "base/registry.h"

namespace millrace::task {
struct Task;
struct TaskFeed;
}  // namespace millrace::task

namespace millrace::check {

class Context;

struct CheckKind {
  std::string name;     // "batch-leakage"
  std::string doc;      // what it looks for: a line
  std::string matters;  // why
  int place = 0;        // in the list: 100 … are of the data, 200 … of the model, 300 … of the loop
  /// It compiles nothing and takes nothing of the feeds: a part of the short form.
  bool quick = false;
  /// Its verdict, what it saw and what to do. Errors that it throws are failures with their message.
  Finding (*run)(Context& context) = nullptr;

  const char* group() const { return place < 200 ? "data" : place < 300 ? "model" : "loop"; }
};

#define MILLRACE_CHECK_KIND(NAME)      \
  extern const CheckKind check_##NAME; \
  const CheckKind check_##NAME

Registry<CheckKind>& check_kinds();

/// Findings, as checks return them.
Finding passed(std::string saw);
Finding warned(std::string saw, std::string advice);
Finding failed(std::string saw, std::string advice);
Finding not_for(std::string why);
/// Named, of what a check saw.
struct Number {
  template <typename T>
  Number(const char* called, T of) : name(called), value(static_cast<double>(of)) {}
  const char* name;
  double value;
};
/// The finding, with these as its numbers.
Finding with_numbers(Finding finding, std::initializer_list<Number> numbers);
/// The worse of both; where they are alike, what both saw.
Finding worse(Finding one, const Finding& other);

/// Those of the data of a training that is about to begin that take less than a second, all together: nothing
/// of its feeds is taken.
std::vector<Finding> quick_checks(const task::Task& task, const task::TaskFeed& training,
                                  const task::TaskFeed& tests);

/// Runs those that `options` names on what is to be checked.
std::vector<Finding> run_checks(Context& context, const Options& options);

}  // namespace millrace::check

// What the verbs of `millrace data` share.
#pragma once

#include <cstdio>
#include <fmt/core.h>
#include <string>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/error.h>

#include "base/utf8.h"
#include "cli/command.h"
#include "data/formats/open_dataset.h"
#include "task/class_names.h"
#include "task/toml_text.h"

namespace millrace::cli {

/// How a data set was opened, where the user should know: on standard error, so that --json stays whole.
inline void print_notes(const data::Dataset& dataset) {
  for (const std::string& note : dataset.notes()) fmt::print(stderr, "note: {}\n", note);
}

/// What is lost where a column of numbers of classes is written without their names, and how to have them
/// again; "" where the names are the numbers.
inline std::string lost_names(const std::string& column, const std::vector<std::string>& names) {
  bool same = true, numbers = false;
  for (size_t i = 0; i < names.size(); ++i) {
    same = same && names[i] == std::to_string(i);
    numbers = numbers || task::is_whole_number(names[i]);
  }
  if (same) return {};
  std::vector<std::string> said;
  for (const std::string& name : names) said.push_back(stored_text(name));
  const std::string list = task::toml_text(said);
  if (numbers)
    return fmt::format("note: {}: the numbers of classes are written, without their names: {}", column, list);
  return fmt::format(
      "note: {}: the numbers of classes are written, without their names; a recipe has them again by "
      "output.classes = {}",
      column, list);
}

/// --header, for CSV files whose first line could be read either way.
struct HeaderOption {
  std::string text;

  void declare(Command& command) {
    command.option("--header", text,
                   "CSV: does the first line name the columns? yes or no; by default found from the content");
  }
  data::OpenOptions options() const {
    data::OpenOptions options;
    if (text == "yes" || text == "no")
      options.header = text == "yes";
    else if (!text.empty())
      throw InputError("--header " + text + ": takes yes or no");
    return options;
  }
};

}  // namespace millrace::cli

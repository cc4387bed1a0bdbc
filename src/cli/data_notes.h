// What the verbs of `millrace data` share.
#pragma once

#include <cstdio>
#include <fmt/core.h>
#include <string>

#include <millrace/dataset.h>
#include <millrace/error.h>

#include "cli/command.h"
#include "data/formats/open_dataset.h"

namespace millrace::cli {

/// How a data set was opened, where the user should know: on standard error, so that --json stays whole.
inline void print_notes(const data::Dataset& dataset) {
  for (const std::string& note : dataset.notes()) fmt::print(stderr, "note: {}\n", note);
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

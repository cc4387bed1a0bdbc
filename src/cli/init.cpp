// A first recipe, to begin with.
#include <fmt/core.h>

#include "cli/verbs.h"
#include "task/draft.h"

namespace millrace::cli {

namespace {

Action declare_init(Command& command) {
  auto path = std::make_shared<std::string>(), test = std::make_shared<std::string>();
  command.positional("DATA", *path, "what to train on: a folder, a table, tars, texts … data of any format")
      .option("--test", *test, "what to test on; by default test, val … beside train, else a share of DATA")
      .footer(
          "Looks at the data and prints a recipe for them, with comments: what a sample is, what is to be "
          "predicted, which\n"
          "model, how long. It is meant to be read and changed; train it as it is to see where that "
          "leads.\n\n"
          "  millrace init photos > photos.toml              a folder with a folder of files for each class\n"
          "  millrace init people.csv > people.toml          a table; the column to predict can be changed\n"
          "  millrace init old.csv --test new.csv > r.toml   with another to test on\n"
          "  millrace init 'speech-{000..007}.tar' > speech.toml\n\n"
          "Then:\n"
          "  millrace data show photos.toml                  look at a batch as training sees it\n"
          "  millrace estimate photos.toml                   say how long it takes\n"
          "  millrace train photos.toml                      train; --help there explains all keys\n");
  return [path, test] {
    fmt::print("{}", task::draft_recipe(*path, *test));
    return 0;
  };
}

}  // namespace

MILLRACE_VERB(init){"init", "draft a recipe for data: what to train, on what, how", declare_init, 40};

}  // namespace millrace::cli

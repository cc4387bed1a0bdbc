#include <fmt/core.h>

#include <millrace/dataset.h>

#include "cli/data_notes.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "data/formats/open_dataset.h"
#include "data/table/query.h"
#include "data/table/select.h"
#include "task/recipe.h"

namespace millrace::cli {

namespace {

Action declare_data_query(Command& command) {
  struct Arguments {
    std::string source, condition;
    bool count = false, json = false;
    HeaderOption header;
  };
  auto a = std::make_shared<Arguments>();
  command.positional("SOURCE", a->source, "data of any format with columns")
      .positional("CONDITION", a->condition, "as in data.where of a recipe")
      .flag("--count", a->count, "only how many there are")
      .flag("--json", a->json, "for programs: one JSON object")
      .footer(
          "Prints the number and the name of each sample that the condition is true for.\n\n"
          "  millrace data query train.tar 'label in (\"cat\", \"dog\") and width > 200'\n"
          "  millrace data query 'train-*.tar' 'not split = \"test\"' --count\n");
  a->header.declare(command);
  return [a] {
    const data::Query query = data::Query::parse(a->condition);
    const auto dataset = data::open_dataset(task::expand(a->source), a->header.options());
    print_notes(*dataset);
    const std::vector<int64_t> samples = data::matching(*dataset, query);
    if (a->json) {
      std::vector<std::pair<std::string, Json>> fields = {{"samples", dataset->count()},
                                                          {"matching", static_cast<int64_t>(samples.size())}};
      if (!a->count) fields.emplace_back("indices", samples);
      print_json(json_object(fields));
      return 0;
    }
    if (a->count) {
      fmt::print("{}\n", samples.size());
      return 0;
    }
    for (const int64_t sample : samples) fmt::print("{}\t{}\n", sample, dataset->name(sample));
    fmt::print(stderr, "{} of {} samples\n", thousands(static_cast<int64_t>(samples.size())),
               thousands(dataset->count()));
    return 0;
  };
}

}  // namespace

MILLRACE_DATA_VERB(query){"query", "print the samples that a condition is true for", declare_data_query, 80};

}  // namespace millrace::cli

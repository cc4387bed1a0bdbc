#include <fmt/core.h>

#include <millrace/dataset.h>

#include "cli/data_notes.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "data/formats/open_dataset.h"
#include "data/table/index.h"
#include "task/recipe.h"

namespace millrace::cli {

namespace {

Action declare_data_index(Command& command) {
  struct Arguments {
    std::string source;
    HeaderOption header;
  };
  auto a = std::make_shared<Arguments>();
  command
      .positional("SOURCE", a->source,
                  "tars (WebDataset shards) or another format whose samples lie in its files")
      .footer(
          "Writes FILE.mrx beside each file (docs/mrx.md): keys, offsets, checksums, and the small values "
          "that conditions\n"
          "ask for. Opening then uses it and does not go through the file. An index of a file that has "
          "changed since is\n"
          "not used; this verb makes it anew.\n\n"
          "  millrace data index train.tar\n"
          "  millrace data index 'train-{000000..000127}.tar'\n");
  a->header.declare(command);
  return [a] {
    // Through the files themselves, whatever indices there are.
    data::OpenOptions options = a->header.options();
    options.use_indices = false;
    const auto dataset = data::open_dataset(task::expand(a->source), options);
    for (const auto& file : dataset->files()) {
      std::string why;
      (void)data::open_index(*file, why);
      if (!why.empty()) fmt::print("{}; it is made anew\n", why);
    }
    Progress progress;
    const auto results = data::write_indices(
        *dataset, [&](int64_t done, int64_t total) { progress.count("", done, total, "samples"); });
    for (const data::IndexResult& result : results)
      progress.print(fmt::format("{}: {} samples, {}", result.path, thousands(result.samples),
                                 bytes_text(static_cast<double>(result.bytes))));
    return 0;
  };
}

}  // namespace

MILLRACE_DATA_VERB(index){
    "index", "write the index beside a source's files: opening, choosing and checking without a pass",
    declare_data_index, 70};

}  // namespace millrace::cli

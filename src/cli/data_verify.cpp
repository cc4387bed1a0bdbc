#include <fmt/core.h>

#include <millrace/dataset.h>

#include "cli/data_notes.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "data/formats/open_dataset.h"
#include "data/tools/verify.h"
#include "task/recipe.h"

namespace millrace::cli {

namespace {

Action declare_data_verify(Command& command) {
  struct Arguments {
    std::string source;
    bool json = false;
    HeaderOption header;
  };
  auto a = std::make_shared<Arguments>();
  command.positional("SOURCE", a->source, "data of any format with columns")
      .flag("--json", a->json, "for programs: one JSON object")
      .footer(
          "Compares each sample with the checksum in the index (made by millrace data index) and with those "
          "that the\n"
          "format itself has. Exit code 1 when a sample is bad.\n\n"
          "  millrace data verify 'train-{000000..000127}.tar'\n");
  a->header.declare(command);
  return [a] {
    const auto dataset = data::open_dataset(task::expand(a->source), a->header.options());
    print_notes(*dataset);
    Progress progress;
    const data::VerifyResult result = data::verify(*dataset, [&](int64_t done, int64_t total) {
      if (!a->json) progress.count("", done, total, "samples");
    });
    progress.finish();
    if (a->json) {
      std::vector<Json> bad;
      for (const data::BadSample& each : result.bad)
        bad.push_back(json_object({{"sample", each.index}, {"name", each.name}, {"why", each.why}}));
      print_json(
          json_object({{"samples", result.samples}, {"with_checksum", result.with_checksum}, {"bad", bad}}));
      return result.bad.empty() ? 0 : 1;
    }
    for (const data::BadSample& each : result.bad) fmt::print("bad: {}: {}\n", each.name, each.why);
    fmt::print("{}: {} samples, {} of them with a checksum in the index; {} bad\n", dataset->path(),
               thousands(result.samples), thousands(result.with_checksum),
               thousands(static_cast<int64_t>(result.bad.size())));
    if (result.with_checksum == 0)
      fmt::print("Only what the format itself has was compared; {}.\n",
                 dataset->extent(0) ? "millrace data index stores a checksum of each sample"
                                    : "samples without bytes of their own in a file have no checksums");
    return result.bad.empty() ? 0 : 1;
  };
}

}  // namespace

MILLRACE_DATA_VERB(verify){"verify", "compare all checksums", declare_data_verify, 90};

}  // namespace millrace::cli

#include <filesystem>
#include <fmt/core.h>

#include <millrace/dataset.h>

#include "base/file.h"
#include "base/format.h"
#include "base/suggest.h"
#include "base/words.h"
#include "cli/data_notes.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "data/formats/formats.h"
#include "data/formats/mds.h"
#include "data/formats/open_dataset.h"
#include "data/formats/overwrite.h"
#include "data/tools/convert.h"
#include "task/recipe.h"

namespace millrace::cli {
namespace {

std::vector<std::string> format_names(bool pipes = false) {
  std::vector<std::string> names;
  for (const data::Format* format : data::formats().all())
    if (format->create && (format->pipes || !pipes)) names.emplace_back(format->name);
  return names;
}
std::string writable_formats(bool pipes = false) {
  return fmt::format("{}", fmt::join(format_names(pipes), ", "));
}

/// The format asked for, else that which the name of the file to be written ends in.
const data::Format& format_to_write(const std::string& asked, const std::string& out) {
  const std::string name = asked.empty() ? data::format_by_ending(out, true) : asked;
  if (asked.empty() && !data::formats().find(name))
    fail<InputError>("{}: which format? {}{} Add --format and one of: {}", out,
                     name.empty() ? "Its name has no ending that says so"
                                  : fmt::format("'.{}' is the ending of none", name),
                     did_you_mean(name, format_names(), "."), writable_formats());
  const data::Format& format = data::formats().at(name);
  if (!format.create)
    fail<InputError>("{} can only be read; what can be written: {}", format.name, writable_formats());
  return format;
}

/// Which names of classes are not written.
std::string lost_in(const data::Dataset& dataset, size_t column, const data::Format& to) {
  const auto& [name, kind] = dataset.columns()[column];
  if (kind != data::ColumnKind::integer || data::writes_names(to)) return {};
  return lost_names(name, dataset.class_names(column));
}

Action declare_data_convert(Command& command) {
  struct ConvertArguments {
    std::string source, out, format, columns;
    bool zstd = false, force = false;
    HeaderOption header;
  };
  auto a = std::make_shared<ConvertArguments>();
  command.positional("SOURCE", a->source, "data of any format")
      .positional("OUT", a->out, "the file to write, - for standard output; for mds, a new folder")
      .option("--format", a->format, "what to write, where OUT's ending does not say: " + writable_formats())
      .option("--columns", a->columns, "only these, as in image,label; by default all")
      .flag("--zstd", a->zstd, "compress (mds only)")
      .flag("--force", a->force, "replace a file that is there, unless SOURCE is read from it")
      .footer(
          "  millrace data convert rows.csv rows.parquet\n"
          "  millrace data convert rows.parquet - --format csv\n"
          "  millrace data convert train.tfrecord train.beton\n"
          "  millrace data convert train.rec mds/train --format mds --columns image,label\n");
  a->header.declare(command);
  return [a] {
    const data::Format& format = format_to_write(a->format, a->out);
    if (a->zstd && format.name != "mds") fail<InputError>("--zstd goes with --format mds only");
    const bool piped = a->out == "-" || a->out == standard_output;
    if (piped && !format.pipes)
      fail<InputError>("{}: {} is not written from its beginning to its end; name a file, or write {}",
                       a->out, format.name, writable_formats(true));
    if (piped) a->out = standard_output;
    const auto dataset = data::open_dataset(task::expand(a->source), a->header.options());
    const std::vector<size_t> chosen = data::choose_columns(*dataset, split_list(a->columns));
    const bool names = data::writes_names(format);
    const std::vector<data::Column> columns = data::columns_at(*dataset, chosen, names);
    std::vector<std::filesystem::path> written = {a->out};
    if (format.beside) written.emplace_back(format.beside(a->out));
    data::require_free(*dataset, written, a->force || piped);
    data::MdsOptions options;
    options.zstd = a->zstd;
    const auto writer = a->zstd ? data::create_mds(a->out, columns, options) : format.create(a->out, columns);
    Progress progress(piped ? stderr : stdout);
    data::copy_samples(
        *dataset, chosen, *writer,
        [&](int64_t done, int64_t total) { progress.count("", done, total, "samples"); }, names);
    for (const size_t column : chosen)
      if (const std::string line = lost_in(*dataset, column, format); !line.empty()) progress.print(line);
    progress.print(fmt::format("{}: {} samples of {} columns as {}", a->out, thousands(dataset->count()),
                               columns.size(), format.doc));
    return 0;
  };
}

}  // namespace

MILLRACE_DATA_VERB(convert){"convert", "copy a source into another format", declare_data_convert, 60};

}  // namespace millrace::cli

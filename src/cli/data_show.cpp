// A batch as training sees it.
#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>

#include "base/file.h"
#include "base/format.h"
#include "cli/batch_files.h"
#include "cli/outputs.h"
#include "cli/verbs.h"
#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/png.h"
#include "data/formats/overwrite.h"
#include "data/tools/contact_sheet.h"
#include "train/feed_at_step.h"
#include "train/run_folder.h"

namespace millrace::cli {
namespace {

struct ShowArguments {
  std::string recipe, out = "batch.png";
  std::vector<std::string> changes;
  int64_t step = 1, count = 64, columns = 8;
  bool force = false;
};

constexpr const char* sheet_software = "millrace data show";

/// Another sheet of this command may be replaced, other files not.
void require_free_sheet(const std::string& out, bool force) {
  std::error_code none;
  if (force || !std::filesystem::is_regular_file(out, none)) return;
  std::ifstream file(out, std::ios::binary);
  std::vector<uint8_t> begin(256);
  file.read(reinterpret_cast<char*>(begin.data()), std::ssize(begin));
  begin.resize(static_cast<size_t>(file.gcount()));
  if (!data::is_png_by(begin, sheet_software))
    fail<InputError>(
        "{}: is there already, and was not made by {}; --force replaces it, or write to another place", out,
        sheet_software);
}

/// What a row's targets say, those at each place left out: "cat", "price 12, kind new".
std::string row_label(const task::Task& task, const data::Feed& feed, const data::FeedBatch& batch,
                      int64_t row) {
  std::string label;
  for (const auto& output : task.outputs) {
    if (output->at_places()) continue;
    const std::string text = task::row_target(*output, feed, batch, row);
    label += fmt::format("{}{}{}{}", label.empty() ? "" : ", ", output->name(),
                         output->name().empty() ? "" : " ", text);
  }
  return label;
}

int run_data_show(const ShowArguments& a) {
  require_named(a.out, "--out");
  const task::Recipe recipe = train::recipe_of(a.recipe, a.changes);
  if (a.columns < 1 || a.columns > 1000 || a.count < 1)
    fail<InputError>("--columns takes 1 to 1000, --count 1 or more");
  const task::Opened opened = train::open_at_step(recipe, "", a.step, {});
  data::Feed& feed = *opened.training.feed;
  const data::FeedBatch& batch = feed.next();
  const int64_t count = std::min(a.count, batch.valid);
  std::vector<task::InputRows> rows;  // by input
  for (const auto& input : opened.task.inputs) rows.emplace_back(*input, feed, batch);
  std::vector<data::Tile> tiles;
  std::string words;
  for (int64_t row = 0; row < count; ++row) {
    const std::string label = row_label(opened.task, feed, batch, row);
    bool drawn = false;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto& input = opened.task.inputs[i];
      const std::vector<Array> arrays = rows[i].row(row);
      if (const auto planes = task::row_picture(*input, arrays)) {
        tiles.push_back({data::picture_of(*planes), drawn ? "" : label});
        drawn = true;
      } else {
        words += fmt::format("{}{}{}: {}\n", row, input->name().empty() ? "" : " ", input->name(),
                             input->text(arrays));
      }
    }
    // Labels stand in the rows of the sheet, or behind the words.
    if (!drawn && !label.empty()) words += fmt::format("{}  → {}\n", row, label);
    if (drawn)
      fmt::print("{}{}", label.empty() ? "-" : label,
                 (row + 1) % a.columns == 0 || row + 1 == count ? "\n" : "  ");
  }
  fmt::print("{}", words);
  if (tiles.empty()) {
    fmt::print("{} {} of step {}\n", count, feed.unit(), a.step);
    return 0;
  }
  // Each sample's tiles stay in one row.
  const int64_t each = std::ssize(tiles) / count;
  const data::ContactSheet sheet =
      data::contact_sheet(tiles, static_cast<int>(a.columns * std::max<int64_t>(each, 1)));
  const std::filesystem::path outputs[] = {a.out};
  if (opened.training.samples)
    data::require_free(*opened.training.samples, outputs, true);  // the data's never
  require_free_sheet(a.out, a.force);
  write_file(a.out, data::encode_png(sheet.picture, sheet_software));
  fmt::print("{}: {} {} of step {}, {}x{}\n", a.out, count, feed.unit(), a.step, sheet.picture.width,
             sheet.picture.height);
  return 0;
}

Action declare_data_show(Command& command) {
  auto a = std::make_shared<ShowArguments>();
  command.positional("RECIPE", a->recipe, "a recipe or a run folder")
      .positional("key=value", a->changes, "changes of the recipe", false)
      .option("-o,--out", a->out, "the PNG file to write (batch.png), where samples can be looked at")
      .option("--step", a->step, "the step whose batch is drawn")
      .option("-n,--count", a->count, "samples, at most")
      .option("--columns", a->columns, "samples in a row")
      .flag("--force", a->force,
            "replace a file that is there and that this command did not write; never the data's")
      .footer(
          "Draws samples as the model gets them: resized, cropped, augmented, mixed, each with its target "
          "below "
          "it. Targets\n"
          "are printed in the same rows, and samples that cannot be drawn as words.\n\n"
          "  millrace data show examples/letters.toml\n"
          "  millrace data show examples/letters.toml 'input.augment=[\"rotate 30\"]' --out rotated.png\n");
  return [a] { return run_data_show(*a); };
}

}  // namespace

MILLRACE_DATA_VERB(show){"show", "draw a batch as training sees it, augmented, on one picture",
                         declare_data_show, 40};

}  // namespace millrace::cli

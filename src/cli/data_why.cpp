#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/format.h"
#include "cli/batch_files.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "data/codecs/pictures/png.h"
#include "data/tools/contact_sheet.h"
#include "train/arrays.h"
#include "train/datasets.h"
#include "train/run_folder.h"
#include "train/texts.h"

namespace millrace::cli {
namespace {

void print_json(const data::Loader& loader, const data::Batch& batch, int64_t step) {
  nlohmann::ordered_json json{{"step", step},
                              {"seed", batch.start.seed},
                              {"epoch", batch.start.epoch},
                              {"position", batch.start.position}};
  const std::vector<std::string>& classes = loader.classes();
  for (size_t i = 0; i < static_cast<size_t>(batch.valid); ++i) {
    nlohmann::ordered_json sample{
        {"position", batch.start.position + static_cast<int64_t>(i)},
        {"index", batch.indices[i]},
        {"name", batch.names.empty() ? loader.samples().name(batch.indices[i]) : batch.names[i]},
        {"class", classes[static_cast<size_t>(batch.labels[i])]}};
    if (!batch.weights.empty()) sample["weight"] = batch.weights[i];
    if (!batch.mix.empty()) {
      sample["kept"] = batch.mix[i];
      sample["mixed_with"] = classes[static_cast<size_t>(batch.mixed_labels[i])];
    }
    json["samples"].push_back(sample);
  }
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_table(const data::Loader& loader, const data::Batch& batch, int64_t step) {
  fmt::print(
      "step {}: epoch {}, samples {} to {} of {} in its order; random changes are drawn by seed {}, the "
      "epoch and\n"
      "the position\n",
      step, batch.start.epoch, batch.start.position, batch.start.position + batch.valid - 1,
      loader.samples_per_epoch(), batch.start.seed);
  std::vector<std::string> titles = {"position", "index", "<class"};
  if (!batch.weights.empty()) titles.emplace_back("weight");
  if (!batch.mix.empty()) titles.emplace_back("<mixed with");
  titles.emplace_back("<sample");
  Table table(std::move(titles));
  const std::vector<std::string>& classes = loader.classes();
  for (size_t i = 0; i < static_cast<size_t>(batch.valid); ++i) {
    std::vector<std::string> row = {std::to_string(batch.start.position + static_cast<int64_t>(i)),
                                    std::to_string(batch.indices[i]),
                                    classes[static_cast<size_t>(batch.labels[i])]};
    if (!batch.weights.empty()) row.push_back(fmt::format("{:.4g}", batch.weights[i]));
    if (!batch.mix.empty())
      row.push_back(fmt::format("{:.0f} % {}", 100 * (1 - batch.mix[i]),
                                classes[static_cast<size_t>(batch.mixed_labels[i])]));
    row.push_back(batch.names.empty() ? loader.samples().name(batch.indices[i]) : batch.names[i]);
    table.row(std::move(row));
  }
  fmt::print("{}", table.str());
}

/// Of texts: what each row is made of.
void print_rows(const data::Feed& feed, const data::Cursor& start, int64_t step, bool json) {
  const std::vector<std::string> rows = feed.rows();
  if (json) {
    const nlohmann::ordered_json object{{"step", step},
                                        {"seed", start.seed},
                                        {"epoch", start.epoch},
                                        {"position", start.position},
                                        {"rows", rows}};
    fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  fmt::print("step {}: epoch {}, rows {} to {}; texts are counted from 0 as {} has them\n", step, start.epoch,
             start.position, start.position + static_cast<int64_t>(rows.size()) - 1, feed.path());
  for (size_t i = 0; i < rows.size(); ++i)
    fmt::print("{:>4}: {}\n", start.position + static_cast<int64_t>(i), rows[i]);
}

/// Of tables and sounds: which samples each row is.
void print_samples(const data::Feed& feed, const data::FeedBatch& batch, const data::Dataset& samples,
                   int64_t step, bool json) {
  const std::vector<int64_t> numbers = feed.samples();
  const data::Cursor start = batch.start;
  nlohmann::ordered_json object{
      {"step", step}, {"seed", start.seed}, {"epoch", start.epoch}, {"position", start.position}};
  Table table({"position", "index", "<class", "<sample"});
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int64_t position = start.position + static_cast<int64_t>(i);
    const std::string &name = samples.name(numbers[i]),
                      &label = feed.classes()[static_cast<size_t>(batch.targets[i])];
    object["samples"].push_back(
        {{"position", position}, {"index", numbers[i]}, {"name", name}, {"class", label}});
    table.row({std::to_string(position), std::to_string(numbers[i]), label, name});
  }
  if (json) {
    fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  fmt::print(
      "step {}: epoch {}, {} {} to {} of its order; random changes are drawn by seed {}, the epoch and the "
      "position\n{}",
      step, start.epoch, feed.unit(), start.position,
      start.position + static_cast<int64_t>(numbers.size()) - 1, start.seed, table.str());
}

void explain_arrays(const train::Recipe& recipe, int64_t step, const std::string& folder, bool json) {
  const train::ArraysAtStep at = train::arrays_at_step(recipe, step);
  const data::FeedBatch& batch = at.feed->next();
  print_samples(*at.feed, batch, *at.samples, step, json);
  if (folder.empty()) return;
  write_arrays(folder, *at.feed, batch);
  if (recipe.data.samples == "table")
    write_rows(folder, *at.feed, *at.samples);
  else
    write_sounds(folder, *at.feed, *at.samples);
  if (!json) fmt::print("{}: {} {}\n", folder, batch.valid, at.feed->unit());
}

void explain_texts(const train::Recipe& recipe, int64_t step, const std::string& folder, bool json) {
  const auto feed = train::texts_at_step(recipe, step);
  const data::FeedBatch& batch = feed->next();
  print_rows(*feed, batch.start, step, json);
  if (folder.empty()) return;
  write_arrays(folder, *feed, batch);
  write_texts(folder, *feed, batch, *train::tokenizer_of(recipe));
  if (!json) fmt::print("{}: {} rows\n", folder, batch.valid);
}

}  // namespace

Action declare_data_why(Command& command) {
  struct Arguments {
    std::string run, write;
    int64_t step = 1;
    bool json = false;
  };
  auto a = std::make_shared<Arguments>();
  command.positional("RUN", a->run, "a run folder, or a recipe")
      .option("--step", a->step, "the step, counted from 1")
      .option("--write", a->write,
              "folder to write the batch to: pictures as the model got them (PNG), rows (CSV), sounds, or "
              "texts, and of "
              "these the model's arrays (.npy)")
      .flag("--json", a->json, "for programs: one JSON object")
      .footer(
          "A batch is a function of seed and step, so the one that made a step can be made again, whether "
          "the run\n"
          "is over or goes on.\n\n"
          "  millrace data why runs/letters-1 --step 300\n"
          "  millrace data why runs/letters-1 --step 300 --write step300\n");
  return [a] {
    const train::Recipe recipe = train::recipe_of(a->run);
    if (!recipe.data.tokenizer.empty()) {
      explain_texts(recipe, a->step, a->write, a->json);
      return 0;
    }
    if (train::has_arrays(recipe)) {
      explain_arrays(recipe, a->step, a->write, a->json);
      return 0;
    }
    std::vector<train::Applied> journal;
    if (std::filesystem::is_directory(a->run))
      journal = train::read_journal(train::RunFolder::open(a->run).journal());
    const auto loader = train::loader_at_step(recipe, a->step, journal);
    const data::Batch& batch = loader->next();
    if (!a->write.empty())
      for (int64_t i = 0; i < batch.valid; ++i)
        write_file(std::filesystem::path(a->write) /
                       fmt::format("{:04}-{}.png", i, batch.indices[static_cast<size_t>(i)]),
                   data::encode_png(data::picture_of(batch, loader->extent(), i)));
    if (a->json)
      print_json(*loader, batch, a->step);
    else
      print_table(*loader, batch, a->step);
    if (!a->write.empty() && !a->json) fmt::print("{}: {} pictures\n", a->write, batch.valid);
    return 0;
  };
}

}  // namespace millrace::cli

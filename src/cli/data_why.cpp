// Which samples made a step, and what the model got of them.
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "cli/batch_files.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "train/checkpoint.h"
#include "train/feed_at_step.h"
#include "train/run_folder.h"

namespace millrace::cli {
namespace {

struct WhyArguments {
  std::string run, write;
  int64_t step = 1;
  bool json = false;
};

/// A batch, with what there is to say of each of its rows.
struct ExplainedBatch {
  const task::Task& task;
  const task::TaskFeed& set;
  const data::FeedBatch& batch;
  std::vector<std::string> rows;  // what they are made of; empty where they are whole samples

  const data::Feed& feed() const { return *set.feed; }
  bool samples() const { return !batch.samples.empty(); }
  /// The outputs with one target a row. Of those with one at each place the rows tell.
  std::vector<const task::Output*> outputs() const {
    std::vector<const task::Output*> list;
    for (const auto& output : task.outputs)
      if (!output->at_places()) list.push_back(output.get());
    return list;
  }
  std::optional<double> weight(int64_t row) const { return task::row_number(feed(), batch, "weights", row); }
  /// The share that a row keeps of itself.
  std::optional<double> kept(int64_t row) const { return task::row_number(feed(), batch, "mix", row); }
};

/// "class" of the only output, else its name.
std::string output_title(const task::Output& output) {
  return output.name().empty() ? output.kind().name : output.name();
}

void print_why_json(const ExplainedBatch& of, int64_t step) {
  nlohmann::ordered_json json{{"step", step},
                              {"seed", of.batch.start.seed},
                              {"epoch", of.batch.start.epoch},
                              {"position", of.batch.start.position}};
  for (int64_t i = 0; i < of.batch.valid; ++i) {
    const auto at = static_cast<size_t>(i);
    nlohmann::ordered_json sample{{"position", of.batch.start.position + i}};
    if (of.samples()) sample["index"] = of.batch.samples[at];
    if (std::string name = task::row_name(of.set, of.batch, i); !name.empty())
      sample["name"] = std::move(name);
    for (const task::Output* output : of.outputs())
      sample[output_title(*output)] = task::row_target(*output, of.feed(), of.batch, i);
    if (const auto weight = of.weight(i)) sample["weight"] = *weight;
    if (const auto kept = of.kept(i)) {
      sample["kept"] = *kept;
      nlohmann::ordered_json mixed;
      for (const task::Output* output : of.outputs())
        mixed[output_title(*output)] = task::row_target(*output, of.feed(), of.batch, i, true);
      sample["mixed_with"] = mixed.size() == 1 ? *mixed.begin() : mixed;
    }
    if (at < of.rows.size()) sample["row"] = of.rows[at];
    json["samples"].push_back(std::move(sample));
  }
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_why_table(const ExplainedBatch& of, int64_t step) {
  const data::Cursor& start = of.batch.start;
  fmt::print(
      "step {}: epoch {}, {} {} to {} of {} in its order; random changes are drawn by seed {}, the epoch "
      "and\n"
      "the position\n",
      step, start.epoch, of.feed().unit(), start.position, start.position + of.batch.valid - 1,
      of.feed().samples_per_epoch(), start.seed);
  const auto outputs = of.outputs();
  const bool weights = of.weight(0).has_value(), mixed = of.kept(0).has_value(),
             names = !task::row_name(of.set, of.batch, 0).empty();
  std::vector<std::string> titles = {"position"};
  if (of.samples()) titles.emplace_back("index");
  for (const task::Output* output : outputs) titles.push_back("<" + output_title(*output));
  if (weights) titles.emplace_back("weight");
  if (mixed) titles.emplace_back("<mixed with");
  if (!of.rows.empty()) titles.emplace_back("<row");
  if (names) titles.emplace_back("<sample");
  Table table(std::move(titles));
  for (int64_t i = 0; i < of.batch.valid; ++i) {
    const auto at = static_cast<size_t>(i);
    std::vector<std::string> row = {std::to_string(start.position + i)};
    if (of.samples()) row.push_back(std::to_string(of.batch.samples[at]));
    std::string with;
    for (const task::Output* output : outputs) {
      row.push_back(task::row_target(*output, of.feed(), of.batch, i));
      if (mixed) with += (with.empty() ? "" : ", ") + task::row_target(*output, of.feed(), of.batch, i, true);
    }
    if (weights) row.push_back(fmt::format("{:.4g}", *of.weight(i)));
    if (mixed) row.push_back(fmt::format("{:.0f} % {}", 100 * (1 - *of.kept(i)), with));
    if (!of.rows.empty()) row.push_back(at < of.rows.size() ? of.rows[at] : "");
    if (names) row.push_back(task::row_name(of.set, of.batch, i));
    table.row(std::move(row));
  }
  fmt::print("{}", table.str());
  if (!of.samples() && !of.rows.empty())
    fmt::print("samples are counted from 0 as {} has them\n", of.feed().path());
}

int run_data_why(const WhyArguments& a) {
  const task::Recipe recipe = train::recipe_of(a.run);
  std::vector<train::Applied> journal;
  std::string encoding;
  if (std::filesystem::is_directory(a.run)) {
    const train::RunFolder run = train::RunFolder::open(a.run);
    journal = train::read_journal(run.journal());
    // What the run has learnt from the data, so that it is not learnt again.
    if (const auto loaded = train::load_newest_checkpoint(run.checkpoints()))
      encoding = loaded->checkpoint.encoding;
  }
  const task::Opened opened = train::open_at_step(recipe, encoding, a.step, journal);
  data::Feed& feed = *opened.training.feed;
  const data::FeedBatch& batch = feed.next();
  const ExplainedBatch explained{opened.task, opened.training, batch, feed.rows()};
  if (!a.write.empty()) {
    write_arrays(a.write, feed, batch);
    write_rows(a.write, opened.task, opened.training, batch);
  }
  if (a.json)
    print_why_json(explained, a.step);
  else
    print_why_table(explained, a.step);
  if (!a.write.empty() && !a.json) fmt::print("{}: {} {}\n", a.write, batch.valid, feed.unit());
  return 0;
}

Action declare_data_why(Command& command) {
  auto a = std::make_shared<WhyArguments>();
  command.positional("RUN", a->run, "a run folder, or a recipe")
      .option("--step", a->step, "the step, counted from 1")
      .option(
          "--write", a->write,
          "folder to write the batch to: each row as what it can be looked at (PNG, WAV, text), the samples' "
          "columns of numbers and texts (rows.csv), and all arrays of the batch (.npy)")
      .flag("--json", a->json, "for programs: one JSON object")
      .footer(
          "A batch is a function of seed and step, so the one that made a step can be made again, whether "
          "the run\n"
          "is over or goes on.\n\n"
          "  millrace data why runs/letters-1 --step 300\n"
          "  millrace data why runs/letters-1 --step 300 --write step300\n");
  return [a] { return run_data_why(*a); };
}

}  // namespace

MILLRACE_DATA_VERB(why){"why", "list the samples that made a step of a training", declare_data_why, 50};

}  // namespace millrace::cli

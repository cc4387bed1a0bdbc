// Predictions are those that evaluation is made of, to the last bit; and a file to predict may look other
// than training's.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/file.h"
#include "base/format.h"
#include "support/temp_folder.h"
#include "task/feeds.h"
#include "task/generate.h"
#include "task/model.h"
#include "task/predict.h"
#include "task/token_input.h"

using namespace millrace;
using namespace millrace::task;

namespace {

using Logits = std::vector<std::vector<float>>;

/// The task of a recipe with its model as it is drawn: nothing need be learnt to compare logits.
Task drawn_task(const std::string& recipe) {
  std::vector<std::string> notes;
  Task task = open_training(parse_recipe(recipe, "r.toml"), "", 0, nullptr, notes).task;
  make_network(task);
  return task;
}

/// What evaluation compares with the targets, in the order of the samples.
Logits evaluated(Task& task) {
  std::vector<std::string> notes;
  TaskFeed set = open_tests(task, "", 0, 0, nullptr, notes);
  Predictor predictor(task);
  Logits all(static_cast<size_t>(set.feed->count()));
  for (int64_t b = 0; b < set.feed->batches_per_epoch(); ++b) {
    const data::FeedBatch& batch = set.feed->next();
    const Array logits = predictor.logits(*set.feed, batch).at(0);
    const auto width = static_cast<size_t>(logits.shape().back().size());
    const auto rows = logits.as<float>();
    for (size_t i = 0; i < static_cast<size_t>(batch.valid); ++i)
      all.at(static_cast<size_t>(batch.samples[i]))
          .assign(rows.begin() + static_cast<int64_t>(i * width),
                  rows.begin() + static_cast<int64_t>((i + 1) * width));
  }
  return all;
}

struct Predicted {
  Logits logits;
  std::vector<std::string> names, failed;
};

Predicted predicted(Task& task, const std::vector<std::string>& arguments) {
  Predictor predictor(task);
  Predicted out;
  predict_arguments(predictor, task, arguments,
                    {[&](const std::string& name, const std::vector<std::span<const float>>& logits, auto) {
                       out.names.push_back(name);
                       out.logits.emplace_back(logits.at(0).begin(), logits.at(0).end());
                     },
                     [&](const std::string& message) { out.failed.push_back(message); }});
  return out;
}

bool told(const Predicted& predicted, const std::string& part) {
  return predicted.logits.empty() && predicted.failed.size() == 1 &&
         predicted.failed[0].find(part) != std::string::npos;
}

std::string number(int i) { return fmt::format("{}", (i * 7919 % 1000) / 10.0); }

/// Rows of a table without its label; a category looks like a number now and then.
std::string row(int i, bool labelled) {
  const char* codes[] = {"007", "7", "x7", ""};
  return fmt::format("{},{},{}{}\n", i % 11 == 3 ? "" : number(i), i % 5, codes[i % 4],
                     labelled ? i % 3 ? ",no" : ",yes" : "");
}

void write_sound(const std::filesystem::path& path, int pitch, size_t samples = 800) {
  std::string bytes = "RIFF";
  const auto put = [&](uint32_t value, int size) {
    for (int k = 0; k < size; ++k) bytes += static_cast<char>(value >> 8 * k);
  };
  put(static_cast<uint32_t>(36 + 2 * samples), 4);
  bytes += "WAVEfmt ";
  put(16, 4), put(1, 2), put(1, 2), put(8000, 4), put(16000, 4), put(2, 2), put(16, 2);
  bytes += "data";
  put(static_cast<uint32_t>(2 * samples), 4);
  for (size_t i = 0; i < samples; ++i)
    put(static_cast<uint32_t>(static_cast<int>(9000 * std::sin(0.01 * pitch * static_cast<double>(i)))), 2);
  write_file(path, bytes);
}

}  // namespace

TEST_CASE(
    "rows of a table are predicted as evaluation sees them, with or without labels, names and other rows") {
  const testing::TempFolder folder;
  std::string labelled = "size,shelf,code,kind\n", bare = "size,shelf,code\n";
  for (int i = 0; i < 90; ++i) labelled += row(i, true), bare += row(i, false);
  write_file(folder / "train.csv", labelled);
  write_file(folder / "bare.csv", bare);
  const std::string train = (folder / "train.csv").string(), unlabelled = (folder / "bare.csv").string();
  Task task =
      drawn_task(fmt::format("[data]\ntrain = \"{0}\"\ntest = \"{0}\"\n"
                             "[input]\nkind = \"table\"\ncategories = [\"shelf\"]\n"
                             "[output]\nkind = \"class\"\ncolumn = \"kind\"\n"
                             "[model]\nkind = \"table\"\nwidth = 16\n"
                             "[train]\nbatch = 16\n[eval]\nbatch = 32\n",
                             train));
  const Logits judge = evaluated(task);
  REQUIRE(judge.size() == 90);
  CHECK(predicted(task, {train}).logits == judge);
  CHECK(predicted(task, {unlabelled}).logits == judge);
  // Parts no larger than a batch.
  task.recipe.data.cache_mb = 0;
  CHECK(predicted(task, {unlabelled}).logits == judge);

  // Each row alone: nothing in it says which values are numbers, texts or names.
  for (const int i : {0, 1, 2, 3, 14}) {
    write_file(folder / "one.csv", "size,shelf,code\n" + row(i, false));
    const Predicted one = predicted(task, {(folder / "one.csv").string()});
    REQUIRE(one.logits.size() == 1);
    CHECK_MESSAGE(one.logits[0] == judge[static_cast<size_t>(i)], row(i, false));
  }
  write_file(folder / "one.jsonl", "{\"shelf\": 0, \"code\": \"007\", \"size\": 0.0, \"more\": 1}\n");
  CHECK(predicted(task, {(folder / "one.jsonl").string()}).logits == Logits{judge[0]});
  write_file(folder / "one.jsonl", "{\"shelf\": 3, \"code\": null, \"size\": null}\n");
  CHECK(predicted(task, {(folder / "one.jsonl").string()}).logits == Logits{judge[3]});

  write_file(folder / "wrong.csv", "size,shelf,code\nlarge,1,x\n");
  CHECK(told(predicted(task, {(folder / "wrong.csv").string()}),
             "its size is 'large', and in training the column holds numbers"));
  write_file(folder / "wrong.csv", "size,code\n1,x\n");
  CHECK(told(predicted(task, {(folder / "wrong.csv").string()}), "no column 'shelf'"));
}

TEST_CASE("sounds are predicted as evaluation sees them, one by one or in a folder, and bad ones named") {
  const testing::TempFolder folder;
  std::vector<std::string> files;
  for (int i = 0; i < 20; ++i) {
    const std::string name = fmt::format("s/{}/{:02}.wav", i % 2 ? "high" : "low", i);
    write_sound(folder / name, i % 2 ? 60 + i : 10 + i, i == 4 ? 300 : 800);
    files.push_back((folder / name).string());
  }
  std::sort(files.begin(), files.end());
  const std::string all = (folder / "s").string();
  Task task = drawn_task(fmt::format(
      "[data]\ntrain = \"{0}\"\ntest = \"{0}\"\n"
      "[input]\nkind = \"sound\"\nrate = 8000\nseconds = 0.1\nmels = 10\n"
      "[output]\nkind = \"class\"\ncolumn = \"label\"\n"
      "[model]\nlayers = [\"conv 4 3 padding=1\", \"relu\", \"max-pool 2\", \"flatten\", \"linear 2\"]\n"
      "[train]\nbatch = 4\n[eval]\nbatch = 8\n",
      all));
  const Logits judge = evaluated(task);
  REQUIRE(judge.size() == 20);
  CHECK(predicted(task, {all}).logits == judge);
  const Predicted one_by_one = predicted(task, files);
  CHECK(one_by_one.logits == judge);
  CHECK(one_by_one.names == files);
  task.recipe.data.cache_mb = 0;  // parts of a batch
  Predicted parts = predicted(task, {all});
  CHECK(parts.logits == judge);

  write_file(folder / "bad.wav", "no sound");
  parts = predicted(task, {(folder / "bad.wav").string(), files[0], (folder / "none.wav").string()});
  CHECK(parts.logits == Logits{judge[0]});
  REQUIRE(parts.failed.size() == 2);
  std::sort(parts.failed.begin(), parts.failed.end());
  CHECK(parts.failed[0] == (folder / "bad.wav").string() + ": it is neither a WAV nor a FLAC file");
  CHECK(parts.failed[1].find("none.wav: no such file") != std::string::npos);
  CHECK(predicted(task, {(folder / "bad.wav").string()}).failed.size() == 1);
}

TEST_CASE("texts in files are predicted as evaluation sees them, in the order of the file") {
  const testing::TempFolder folder;
  std::string messages = "label\tmessage\n", lines;
  for (int i = 0; i < 50; ++i) {
    const std::string text = std::string(static_cast<size_t>(1 + i * 37 % 60), i % 3 ? 'a' : 'b') + " end";
    messages += fmt::format("{}\t{}\n", i % 3 ? "ham" : "spam", text);
    lines += text + "\n";
  }
  write_file(folder / "messages.tsv", messages);
  write_file(folder / "lines.txt", lines);
  const std::string source = (folder / "messages.tsv").string();
  Task task =
      drawn_task(fmt::format("[data]\ntrain = \"{0}\"\ntest = \"{0}\"\n"
                             "[input]\nkind = \"text\"\ntokenizer = \"byte\"\ncolumn = \"message\"\n"
                             "sequences = \"buckets 3\"\nlength = 64\n"
                             "[output]\nkind = \"class\"\ncolumn = \"label\"\n"
                             "[model]\nkind = \"encoder\"\nwidth = 16\ndepth = 1\nheads = 2\n"
                             "[train]\nbatch = 8\n[eval]\nbatch = 8\n",
                             source));
  // Evaluation goes by length, predictions by the order of the file.
  const Logits judge = evaluated(task);
  REQUIRE(judge.size() == 50);
  CHECK(predicted(task, {source}).logits == judge);
  CHECK(predicted(task, {(folder / "lines.txt").string()}).logits == judge);
  const Predicted one = predicted(task, {"what is no file"});
  CHECK(one.logits.size() == 1);
  CHECK(one.names == std::vector<std::string>{"what is no file"});
}

TEST_CASE("the next token follows the last tokens that the model can see") {
  const testing::TempFolder folder;
  std::string corpus;
  for (int i = 0; i < 200; ++i) corpus += fmt::format("line {} of a corpus\n", i);
  write_file(folder / "corpus.txt", corpus);
  for (const std::string rows : {"windows", "packed"}) {
    Task task =
        drawn_task(fmt::format("[data]\ntrain = \"{}\"\n"
                               "[input]\nkind = \"tokens\"\ntokenizer = \"byte\"\nlength = 8\n"
                               "sequences = \"{}\"\n[output]\nkind = \"tokens\"\n"
                               "[model]\nkind = \"gpt\"\nwidth = 16\ndepth = 1\nheads = 2\n"
                               "[train]\nbatch = 8\n",
                               (folder / "corpus.txt").string(), rows));
    CHECK(generates(task));
    Predictor predictor(task);
    const auto next = [&](const std::string& text) {
      std::vector<double> probabilities(256);
      double sum = 0;
      for (const Continuation::Token& token : go_on(predictor, task, text, 0, 256).next) {
        probabilities.at(static_cast<size_t>(token.id)) = token.probability;
        sum += token.probability;
      }
      CHECK(sum == doctest::Approx(1));
      return probabilities;
    };
    CHECK(next("bcdefghi") == next("abcdefghi"));
    CHECK(next("abc") != next("abd"));
    CHECK(next("abc") != next("abc "));
    CHECK_THROWS_WITH_AS(next(""), doctest::Contains("empty"), InputError);
    CHECK(go_on(predictor, task, "abc", 5, 1).text.substr(0, 1) == go_on(predictor, task, "abc", 1, 1).text);
    // What pads a row behind a text is not seen.
    const auto& input = dynamic_cast<const TokenInput&>(*task.inputs.at(0));
    const Array all = predictor.logits(input.row_of(input.tokenizer().encode("abcdefgh", false)), 8).at(0);
    REQUIRE(all.count() == 8 * 256);
    const auto third = all.as<float>().subspan(2 * 256, 256);
    std::vector<double> shares(third.begin(), third.end());
    double sum = 0;
    for (double& share : shares) sum += share = std::exp(share);
    const auto mine = next("abc");
    for (size_t i = 0; i < 256; ++i) CHECK(shares[i] / sum == doctest::Approx(mine[i]).epsilon(1e-4));
  }
}

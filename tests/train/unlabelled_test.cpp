// Predictions are those that evaluation is made of, to the last bit; and a file to predict may look other than training's.
#include "train/unlabelled.h"

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/file.h"
#include "base/format.h"
#include "support/temp_folder.h"
#include "train/arrays.h"
#include "train/texts.h"

using namespace millrace;
using namespace millrace::train;

namespace {

using Logits = std::vector<std::vector<float>>;

/// What evaluation compares with the labels, in the order of the batches; `labels` gets those.
Logits evaluated(Session& session, data::Feed& feed, std::vector<int64_t>& labels) {
  Predictor predictor(session, "none", session.recipe.train.precision);
  Logits all;
  for (int64_t b = 0; b < feed.batches_per_epoch(); ++b) {
    const data::FeedBatch& batch = feed.next();
    const Array logits = predictor.logits(feed, batch);
    const auto classes = static_cast<size_t>(logits.shape().back().size());
    const auto rows = logits.as<float>();
    for (size_t i = 0; i < static_cast<size_t>(batch.valid); ++i) {
      all.emplace_back(rows.begin() + i * classes, rows.begin() + (i + 1) * classes);
      labels.push_back(batch.targets[i]);
    }
  }
  return all;
}

struct Predicted {
  Logits logits;
  std::vector<std::string> failed;
};

Predicted predicted(Session& session, const std::vector<std::string>& paths) {
  Predictor predictor(session, "none", session.recipe.train.precision);
  const auto samples = open_unlabelled(session, paths);
  Predicted out;
  predict_samples(
      predictor, session, samples,
      {[&](int64_t, std::span<const float> row) { out.logits.emplace_back(row.begin(), row.end()); },
       [&](int64_t i, const std::string& why) { out.failed.push_back(samples->name(i) + ": " + why); }});
  return out;
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
  Recipe recipe;
  recipe.data.train = recipe.data.test = (folder / "train.csv").string();
  recipe.data.samples = "table";
  recipe.data.label = "kind";
  recipe.data.categories = {"shelf"};
  recipe.model.kind = "table";
  recipe.model.width = 16;
  recipe.train.batch = 16;
  recipe.eval.batch = 32;
  std::string encoding;
  (void)training_arrays(recipe, encoding, nullptr);
  Session session = make_array_session(recipe, encoding);
  std::vector<int64_t> labels;
  const Logits judge = evaluated(session, *test_arrays(recipe, encoding, "", nullptr), labels);
  REQUIRE(judge.size() == 90);
  CHECK(predicted(session, {recipe.data.test}).logits == judge);
  CHECK(predicted(session, {(folder / "bare.csv").string()}).logits == judge);
  // Parts no larger than a batch.
  session.recipe.data.cache_mb = 0;
  CHECK(predicted(session, {(folder / "bare.csv").string()}).logits == judge);

  // Each row alone: nothing in it says which values are numbers, texts or names.
  for (const int i : {0, 1, 2, 3, 14}) {
    write_file(folder / "one.csv", "size,shelf,code\n" + row(i, false));
    const Predicted one = predicted(session, {(folder / "one.csv").string()});
    REQUIRE(one.logits.size() == 1);
    CHECK_MESSAGE(one.logits[0] == judge[static_cast<size_t>(i)], row(i, false));
  }
  write_file(folder / "one.jsonl", "{\"shelf\": 0, \"code\": \"007\", \"size\": 0.0, \"more\": 1}\n");
  CHECK(predicted(session, {(folder / "one.jsonl").string()}).logits == Logits{judge[0]});
  write_file(folder / "one.jsonl", "{\"shelf\": 3, \"code\": null, \"size\": null}\n");
  CHECK(predicted(session, {(folder / "one.jsonl").string()}).logits == Logits{judge[3]});

  write_file(folder / "wrong.csv", "size,shelf,code\nlarge,1,x\n");
  CHECK_THROWS_WITH_AS(predicted(session, {(folder / "wrong.csv").string()}),
                       doctest::Contains("its size is 'large', and in training the column holds numbers"),
                       InputError);
  write_file(folder / "wrong.csv", "size,code\n1,x\n");
  CHECK_THROWS_WITH_AS(predicted(session, {(folder / "wrong.csv").string()}),
                       doctest::Contains("no column 'shelf'"), InputError);
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
  Recipe recipe;
  recipe.data.train = recipe.data.test = (folder / "s").string();
  recipe.data.samples = "sounds";
  recipe.data.label = "label";
  recipe.data.rate = 8000;
  recipe.data.seconds = 0.1;
  recipe.data.mels = 10;
  recipe.model.layers = {"conv 4 3 padding=1", "relu", "max-pool 2", "flatten", "linear 2"};
  recipe.train.batch = 4;
  recipe.eval.batch = 8;
  std::string encoding;
  (void)training_arrays(recipe, encoding, nullptr);
  Session session = make_array_session(recipe, encoding);
  std::vector<int64_t> labels;
  const Logits judge = evaluated(session, *test_arrays(recipe, encoding, "", nullptr), labels);
  REQUIRE(judge.size() == 20);
  CHECK(predicted(session, {recipe.data.test}).logits == judge);
  CHECK(predicted(session, files).logits == judge);
  session.recipe.data.cache_mb = 0;  // parts of a batch
  Predicted parts = predicted(session, {recipe.data.test});
  CHECK(parts.logits == judge);

  write_file(folder / "bad.wav", "no sound");
  parts = predicted(session, {(folder / "bad.wav").string(), files[0], (folder / "none.wav").string()});
  CHECK(parts.logits == Logits{judge[0]});
  REQUIRE(parts.failed.size() == 2);
  CHECK(parts.failed[0] == (folder / "bad.wav").string() + ": it is neither a WAV nor a FLAC file");
  CHECK(parts.failed[1].find("none.wav: no such file") != std::string::npos);
  CHECK(predicted(session, {(folder / "bad.wav").string()}).failed.size() == 1);
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
  Recipe recipe;
  recipe.data.train = recipe.data.test = (folder / "messages.tsv").string();
  recipe.data.tokenizer = "byte";
  recipe.data.text = "message";
  recipe.data.label = "label";
  recipe.data.sequences = "buckets 3";
  recipe.data.length = 64;
  recipe.model.kind = "encoder";
  recipe.model.width = 16;
  recipe.model.depth = 1;
  recipe.model.heads = 2;
  recipe.eval.batch = 8;
  Session session = make_text_session(recipe, {"ham", "spam"});
  // Evaluation goes by length: its rows are told by labels and lengths alone, so they are compared as sets of both.
  std::vector<int64_t> labels;
  Logits judge = evaluated(session, *test_texts(recipe, session.classes, "", nullptr), labels);
  const Predicted mine = predicted(session, {recipe.data.test});
  REQUIRE(mine.logits.size() == 50);
  for (size_t i = 0; i < judge.size(); ++i) judge[i].push_back(static_cast<float>(labels[i]));
  Logits sorted;
  for (size_t i = 0; i < 50; ++i) {
    sorted.push_back(mine.logits[i]);
    sorted.back().push_back(i % 3 ? 0.0f : 1.0f);
  }
  std::sort(judge.begin(), judge.end());
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == judge);
  CHECK(predicted(session, {(folder / "lines.txt").string()}).logits == mine.logits);
}

TEST_CASE("the next token follows the last tokens that the model can see") {
  Recipe recipe;
  recipe.data.tokenizer = "byte";
  recipe.data.length = 8;
  for (const char* rows : {"windows", "packed"}) {
    recipe.data.sequences = rows;
    recipe.model.kind = "gpt";
    recipe.model.width = 16;
    recipe.model.depth = 1;
    recipe.model.heads = 2;
    Session session = make_text_session(recipe, {});
    Predictor predictor(session, "none", "fp32");
    const auto next = [&](const std::string& text) {
      const Array logits = next_token_logits(predictor, session, tokenizer_of(recipe)->encode(text, false));
      CHECK(logits.shape() == Shape{256});
      return std::vector<float>(logits.as<float>().begin(), logits.as<float>().end());
    };
    CHECK(next("bcdefghi") == next("abcdefghi"));
    CHECK(next("abc") != next("abd"));
    CHECK(next("abc") != next("abc "));
    CHECK_THROWS_WITH_AS(next(""), doctest::Contains("an empty text"), InputError);
    // What pads a row behind a text is not seen.
    const Array all =
        predictor.logits(prepared_tail(session, tokenizer_of(recipe)->encode("abcdefgh", false)).inputs);
    const auto third = all.as<float>().subspan(2 * 256, 256);
    const auto mine = next("abc");
    float most = 0;
    for (size_t i = 0; i < 256; ++i) most = std::max(most, std::abs(third[i] - mine[i]));
    CHECK(most < 1e-5f);
  }
}

#include <doctest/doctest.h>
#include <fstream>

#include "data/feed/row_plan.h"
#include "data/feed/sequences/token_part.h"
#include "support/temp_folder.h"
#include "task/kind_sections.h"
#include "task/token_input.h"

using namespace millrace;
using namespace millrace::testing;
using data::ColumnKind;

namespace {

std::shared_ptr<const data::Dataset> messages(const std::vector<std::string>& values) {
  std::vector<std::vector<data::Value>> rows;
  for (const std::string& value : values) rows.push_back({value, int64_t{0}});
  return rows_of({{"message", ColumnKind::text}, {"label", ColumnKind::integer}}, std::move(rows));
}

std::unique_ptr<task::Input> learnt_input(const std::string& kind, const Items& items,
                                          std::shared_ptr<const data::Dataset> samples) {
  const task::Recipe recipe;
  return task::input_kinds().at(kind).learn(input_section(kind, items),
                                            {recipe, std::move(samples), {"label"}});
}

/// One row of a part: its arrays, each of `length` numbers.
std::vector<std::vector<int64_t>> row_at(const data::Part& part, const data::RowPick& pick, int64_t length) {
  std::vector<std::vector<int64_t>> arrays;
  std::vector<std::byte*> places;
  for (const data::Field& field : part.fields()) {
    (void)field;
    arrays.emplace_back(static_cast<size_t>(length));
  }
  for (auto& array : arrays) places.push_back(reinterpret_cast<std::byte*>(array.data()));
  data::Row row{{}, length, pick.extracts};
  row.key.index = pick.pick.index;
  part.put(nullptr, row, nullptr, places);
  return arrays;
}

std::string check_message(const std::string& kind, const Items& items, const std::string& model) {
  task::Recipe recipe;
  recipe.model.kind = model;
  return refusal([&] { task::input_kinds().at(kind).check(input_section(kind, items), recipe); });
}

}  // namespace

TEST_CASE("text: each text is a row, of which the model sees tokens and where they are") {
  const auto samples = messages({"ab", "abcdefghij", "x"});
  const auto input =
      learnt_input("text", {{"length", int64_t{4}}, {"sequences", std::string("buckets 4")}}, samples);
  CHECK(input->settings().text("column") == "message");
  task::Recipe recipe;
  const task::Reading reading{recipe, samples};
  const auto part = input->part(reading, task::Purpose::evaluation);
  const auto rows = input->rows(*part, reading, task::Purpose::evaluation, 2);
  REQUIRE(rows->count() == 3);
  CHECK(rows->lengths() == std::vector<int64_t>{4});
  std::vector<data::RowPick> picks(3);
  rows->take({}, picks);
  CHECK(picks[1].pick.index == 1);
  const auto arrays = row_at(*part, picks[1], 4);
  CHECK(arrays == std::vector<std::vector<int64_t>>{{'a', 'b', 'c', 'd'}, {1, 1, 1, 1}});
  CHECK(row_at(*part, picks[0], 4)[1] == std::vector<int64_t>{1, 1, 0, 0});
  CHECK(input->row_text(*part, picks[1]) == "text 1 from its token 0 on, 4 tokens");
  CHECK(input->text(dynamic_cast<task::TokenInput&>(*input).row_of(std::vector<int32_t>{'h', 'i'})) == "hi");
  CHECK(input->notes()[0] == "3 texts, 13 tokens (bytes of 256)");
  CHECK_FALSE(input->cuts());
}

TEST_CASE("text: padded to one length rows are those of any order, of streams, too") {
  const auto samples = messages({"ab", "abcdefghij"});
  const auto input =
      learnt_input("text", {{"length", int64_t{4}}, {"sequences", std::string("padded")}}, samples);
  task::Recipe recipe;
  task::Reading reading{recipe, samples};
  const auto part = input->part(reading, task::Purpose::training);
  CHECK(input->rows(*part, reading, task::Purpose::training, 2) == nullptr);
  CHECK(input->length() == 0);
  CHECK_FALSE(input->plans());
  CHECK(input->fields()[0].type.shape == Shape{Dim::named("batch"), 4});
  CHECK(input->notes().back() == "1 of the texts are longer than input.length = 4 and cut");
  reading.streamed = true;
  CHECK(input->part(reading, task::Purpose::training)->stored_bytes() > 0);
  CHECK(learnt_input("text", {}, samples)->plans());
}

TEST_CASE("text: buckets pad to fewer lengths than one") {
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) texts.emplace_back(i % 2 ? 60 : 5, 'x');
  const auto samples = messages(texts);
  const auto input =
      learnt_input("text", {{"length", int64_t{64}}, {"sequences", std::string("buckets 2")}}, samples);
  task::Recipe recipe;
  const task::Reading reading{recipe, samples};
  const auto part = input->part(reading, task::Purpose::training);
  CHECK(input->rows(*part, reading, task::Purpose::training, 4)->lengths() == std::vector<int64_t>{8, 64});
}

TEST_CASE("text: orders by class get the classes of the samples") {
  const auto samples = messages({"a", "b", "c", "d"});
  const auto input = learnt_input("text", {{"sequences", std::string("buckets 4")}}, samples);
  task::Recipe recipe;
  recipe.data.order = "class-balanced";
  task::Reading reading{recipe, samples};
  const auto part = input->part(reading, task::Purpose::training);
  CHECK_THROWS_AS((void)input->rows(*part, reading, task::Purpose::training, 2), InputError);
  reading.labels = {0, 0, 0, 1};
  reading.classes = {"x", "y"};
  CHECK(input->rows(*part, reading, task::Purpose::training, 2)->count() >= 2);
}

TEST_CASE("text: what was learnt is read back, and another tokenizer is refused") {
  const TempFolder folder;
  const auto vocabulary = [&](const std::string& words) {
    std::ofstream(folder / "vocab.txt") << words;
    return (folder / "vocab.txt").string();
  };
  const Items items = {{"tokenizer", vocabulary("[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\n")}};
  const auto input = learnt_input("text", items, messages({"hello"}));
  const task::InputKind& kind = task::input_kinds().at("text");
  const auto loaded = kind.load(input_section("text", items), input->encoding());
  CHECK(loaded->encoding() == input->encoding());
  CHECK(loaded->settings().text("column") == "message");
  CHECK(loaded->text_columns() == std::vector<std::string>{"message"});
  (void)vocabulary("[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\nworld\n");
  CHECK(refusal([&] {
          (void)kind.load(input_section("text", items), input->encoding());
        }).find("is not the tokenizer that the run was begun with") != std::string::npos);
}

TEST_CASE("text: an argument is a text unless it is a file, and a file that is not there is no text") {
  const auto input = learnt_input("text", {}, messages({"a"}));
  const TempFolder folder;
  std::ofstream(folder / "here") << "x";
  CHECK(input->is_sample("You have won"));
  CHECK(input->is_sample("won"));
  CHECK_FALSE(input->is_sample((folder / "here").string()));
  CHECK_FALSE(input->is_sample("-"));
  CHECK(refusal([&] { (void)input->is_sample("nothing.csv"); }) ==
        "nothing.csv: no such file; check the path");
  const auto sample = input->sample("a text");
  CHECK(sample->name(0) == "a text");
  task::Recipe recipe;
  const auto part = input->part({recipe, sample}, task::Purpose::prediction);
  CHECK(dynamic_cast<const data::TokenPart&>(*part).texts().tokens.size() == 6);
}

TEST_CASE("text or tokens: a data set with something to predict has texts, one of texts alone is a corpus") {
  const task::InputKind &text = task::input_kinds().at("text"), &tokens = task::input_kinds().at("tokens");
  const auto labelled = messages({"a"});
  const auto corpus = rows_of({{"text", ColumnKind::text}}, {{std::string("a")}});
  using Columns = std::vector<std::string>;
  CHECK(text.recognise(*labelled, {"label"}) == Columns{"message"});
  CHECK(tokens.recognise(*labelled, {"label"}).empty());
  CHECK(text.recognise(*corpus, {}).empty());
  CHECK(tokens.recognise(*corpus, {}) == Columns{"text"});
}

TEST_CASE("text: ids beside what is to be read are no columns of a table, categories and numbers are") {
  using Columns = std::vector<std::string>;
  const task::InputKind& text = task::input_kinds().at("text");
  const auto table = [&](const std::vector<data::Column>& beside, const auto& values) {
    std::vector<data::Column> columns = beside;
    columns.push_back({"review", ColumnKind::text});
    columns.push_back({"label", ColumnKind::integer});
    std::vector<std::vector<data::Value>> rows;
    for (int64_t i = 0; i < 60; ++i) {
      std::vector<data::Value> row = values(i);
      row.push_back(fmt::format("I have seen it {} times", i));
      row.push_back(i % 2);
      rows.push_back(std::move(row));
    }
    return text.recognise(*rows_of(columns, rows), {"label"});
  };
  using Row = std::vector<data::Value>;
  CHECK(table({{"id", ColumnKind::integer}}, [](int64_t i) { return Row{i}; }) == Columns{"review"});
  CHECK(table({{"id", ColumnKind::text}}, [](int64_t i) { return Row{fmt::format("{:x}", i * 7919)}; }) ==
        Columns{"review"});
  CHECK(table({{"user_id", ColumnKind::integer}}, [](int64_t i) { return Row{i % 9}; }).empty());
  CHECK(table({{"x_index", ColumnKind::integer}}, [](int64_t i) { return Row{i * 37 % 1009}; }).empty());
  CHECK(table({{"id", ColumnKind::integer}}, [](int64_t i) { return Row{1'000'000 + i * 37 % 1009}; }) ==
        Columns{"review"});
  CHECK(table({{"stars", ColumnKind::integer}}, [](int64_t i) { return Row{i}; }).empty());
  CHECK(table({{"town", ColumnKind::text}}, [](int64_t i) { return Row{i % 3 ? "Rome" : "Oslo"}; }).empty());
  // Names of whom there are many rows are a table's, and where nothing is there, nothing is to be read.
  std::vector<std::vector<data::Value>> many, none;
  for (int64_t i = 0; i < 12'000; ++i)
    many.push_back({i, fmt::format("Hotel at the lake {}", i * 7919 % 2000), i % 2});
  for (int64_t i = 0; i < 60; ++i) none.push_back({i, data::Value(), i % 2});
  const std::vector<data::Column> columns = {
      {"id", ColumnKind::integer}, {"review", ColumnKind::text}, {"label", ColumnKind::integer}};
  CHECK(text.recognise(*rows_of(columns, many), {"label"}).empty());
  CHECK(text.recognise(*rows_of(columns, none), {"label"}).empty());
  // Which of two is to be read nobody knows.
  CHECK(table({{"title", ColumnKind::text}}, [](int64_t i) {
          return Row{fmt::format("The end of it, part {}", i)};
        }).empty());
  CHECK(table({{"title", ColumnKind::text}}, [](int64_t i) {
          return Row{fmt::format("第{}章节的故事", i)};
        }).empty());
}

TEST_CASE("tokens: targets are the next tokens, and where test rows come from the end of the corpus") {
  const auto corpus = rows_of({{"text", ColumnKind::text}}, {{std::string("abcdefghijklmnopqrst")}});
  task::Recipe recipe;
  recipe.data.test_share = 0.5;
  task::Reading reading{recipe, corpus};
  const auto input = task::input_kinds().at("tokens").learn(
      input_section("tokens", {{"length", int64_t{4}}, {"separator", std::string()}}), reading);
  CHECK(input->cuts());
  reading.share = task::Reading::Share::test;
  const auto part = input->part(reading, task::Purpose::evaluation);
  const auto rows = input->rows(*part, reading, task::Purpose::evaluation, 1);
  std::vector<data::RowPick> picks(1);
  rows->take({}, picks);
  CHECK(row_at(*part, picks[0], 4) ==
        std::vector<std::vector<int64_t>>{{'k', 'l', 'm', 'n'}, {'l', 'm', 'n', 'o'}});
  CHECK(input->bytes_per_target(*part) == 1);
  CHECK(input->part(reading, task::Purpose::prediction)->fields().size() == input->fields().size());
}

TEST_CASE(
    "tokens: rows are said by text, also where one goes over several, or texts are a part of the data") {
  const auto corpus = rows_of({{"text", ColumnKind::text}},
                              {{std::string(5, 'a')}, {std::string(4, 'b')}, {std::string(30, 'c')}});
  task::Recipe recipe;
  recipe.data.test_share = 0.9;  // all but the first
  task::Reading reading{recipe, corpus};
  const auto lines_of = [&](const char* sequences, int64_t length, task::Purpose purpose) {
    const Items items = {
        {"length", length}, {"separator", std::string()}, {"sequences", std::string(sequences)}};
    const auto input = task::input_kinds().at("tokens").learn(input_section("tokens", items), reading);
    const auto part = input->part(reading, purpose);
    const auto rows = input->rows(*part, reading, purpose, 1);
    std::vector<data::RowPick> picks(static_cast<size_t>(rows->count()));
    rows->take({}, picks);
    std::vector<std::string> lines;
    for (const data::RowPick& pick : picks) lines.push_back(input->row_text(*part, pick));
    return lines;
  };
  const auto packed = lines_of("packed", 10, task::Purpose::prediction);
  REQUIRE(packed.size() == 4);
  CHECK(packed[0] == "text 2 from its token 0 on, 10 tokens");
  CHECK(packed[3] == "text 0 from its token 0 on, 5 tokens; text 1 from its token 0 on, 4 tokens");
  CHECK(lines_of("windows", 8, task::Purpose::evaluation).at(1) == "text 1 from its token 3 on, 8 tokens");
  reading.share = task::Reading::Share::test;
  CHECK(lines_of("windows", 8, task::Purpose::evaluation).at(1) == "text 2 from its token 4 on, 8 tokens");
}

TEST_CASE("tokens: masked ones have an id of their own, and are what the output predicts") {
  const auto corpus = rows_of({{"text", ColumnKind::text}}, {{std::string(200, 'a')}});
  const Items items = {{"length", int64_t{50}}, {"masked", std::string("0.2 3")}};
  task::Recipe recipe;
  std::vector<std::unique_ptr<task::Input>> inputs;
  inputs.push_back(task::input_kinds().at("tokens").learn(input_section("tokens", items), {recipe, corpus}));
  const auto output =
      task::output_kinds().at("tokens").learn(output_section("tokens"), {recipe, corpus}, inputs);
  CHECK(output->width() == 257);
  CHECK(output->at_places());
  CHECK(output->from() == inputs[0].get());
  CHECK(output->part({recipe, corpus}) == nullptr);
  CHECK(inputs[0]->architectures() == std::vector<std::string>{"encoder"});
  const auto part = inputs[0]->part({recipe, corpus}, task::Purpose::training);
  CHECK(part->fields().back().name == "counted");
  const auto loaded =
      task::input_kinds().at("tokens").load(input_section("tokens", items), inputs[0]->encoding());
  CHECK(dynamic_cast<task::TokenInput&>(*loaded).vocabulary() == 257);
  CHECK(inputs[0]->bytes_per_target(*part) == 0);

  recipe.eval.metrics = {"bits-per-byte"};
  recipe.inputs = {inputs[0]->section()};
  CHECK(refusal([&] {
          task::output_kinds().at("tokens").check(output_section("tokens"), recipe);
        }).find("input.masked is set") != std::string::npos);
}

TEST_CASE("tokens: an output judges the places that count, and tells what may come next") {
  const auto corpus = rows_of({{"text", ColumnKind::text}}, {{std::string("abc")}});
  const task::Recipe recipe;
  std::vector<std::unique_ptr<task::Input>> inputs;
  inputs.push_back(task::input_kinds().at("tokens").learn(input_section("tokens"), {recipe, corpus}));
  const auto output =
      task::output_kinds().at("tokens").learn(output_section("tokens"), {recipe, corpus}, inputs);
  std::vector<float> logits(2 * 2 * 256);
  logits[0 * 256 + 'a'] = logits[1 * 256 + 'b'] = logits[2 * 256 + 'c'] = logits[3 * 256 + 'd'] = 50;
  const std::vector<int64_t> targets = {'a', 'x', -1, 'd'};
  CHECK(judged(*output, logits, targets, {1, 1}, {"accuracy"}, 2).at("accuracy") == doctest::Approx(2.0 / 3));
  CHECK(judged(*output, logits, targets, {0, 1}, {"accuracy"}, 2).at("accuracy") == 1);
  CHECK(output->predict(std::span<const float>(logits).first(2 * 256), 1).text == "\"b\" 100.0 %");
  CHECK(output->target_text(bytes_of(std::vector<int64_t>{'h', -1, 'i'})) == "hi");
  CHECK(refusal([&] {
          (void)task::output_kinds().at("tokens").learn(output_section("tokens", {{"of", std::string("y")}}),
                                                        {recipe, corpus}, inputs);
        }).starts_with("output.of = \"y\": there is no such input"));
}

TEST_CASE("models that cannot learn what an input asks for are refused by the key") {
  CHECK(check_message("tokens", {}, "gpt") == "");
  CHECK(check_message("tokens", {}, "") == "");
  CHECK(check_message("tokens", {}, "encoder").find("set input.masked") != std::string::npos);
  CHECK(check_message("tokens", {{"masked", std::string("0.15 3")}}, "encoder") == "");
  CHECK(
      check_message("tokens", {{"masked", std::string("0.15 3")}}, "gpt").find("input.masked = \"0.15 3\"") !=
      std::string::npos);
  CHECK(check_message("tokens", {{"masked", std::string("2 3")}}, "").starts_with("input.masked = \"2 3\""));
  CHECK(
      check_message("tokens", {{"sequences", std::string("packed")}}, "lstm_char").find("without padding") !=
      std::string::npos);
  CHECK(check_message("text", {}, "gpt").find("take encoder, bag, bert, lstm or gru") != std::string::npos);
  CHECK(check_message("text", {{"sequences", std::string("windows")}}, "bag")
            .find("give \"padded\", \"buckets 4\"") != std::string::npos);
  CHECK(check_message("text", {{"sequences", std::string("buckets 32 16")}}, "bag").find("must ascend") !=
        std::string::npos);
}

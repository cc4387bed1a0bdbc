#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <map>

#include "base/file.h"
#include "data/encode/table_encoder.h"
#include "data/formats/open_dataset.h"
#include "learnt_input.h"
#include "support/datasets.h"
#include "support/rows_dataset.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::testing;

namespace {

using data::ColumnKind;

/// Numbers that are missing here and there, codes, texts, a target.
std::shared_ptr<const data::Dataset> people(int64_t count = 40) {
  std::vector<std::vector<data::Value>> rows;
  const char* works[] = {"State-gov", "Private", "", "Private"};
  for (int64_t i = 0; i < count; ++i) {
    const data::Value none;
    rows.push_back({20 + i * 7 % 50, i % 5 == 2 ? none : data::Value(0.25 * static_cast<double>(i) - 3.1),
                    i % 3, i % 4 == 2 ? none : data::Value(std::string(works[i % 4])),
                    std::string(i % 2 ? "yes" : "no")});
  }
  return std::make_shared<RowsDataset>("people",
                                       std::vector<data::Column>{{"age", ColumnKind::integer},
                                                                 {"gain", ColumnKind::real},
                                                                 {"zone", ColumnKind::integer},
                                                                 {"work", ColumnKind::text},
                                                                 {"rich", ColumnKind::text}},
                                       std::move(rows));
}

std::unique_ptr<task::Input> learnt_table(const std::shared_ptr<const data::Dataset>& samples,
                                          const task::Section& section) {
  const task::Recipe recipe;
  return task::input_kinds().at("table").learn(section, reading_of(recipe, samples, {"rich"}));
}

bool same_bits(const Array& a, const Array& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

/// Numbers as a table gives them, f64 with NaN, as f64 arithmetic makes them a model's.
Array standardised(const data::TableEncoder& encoder, const Array& raw) {
  const auto& dense = encoder.dense();
  Array made(f32, {raw.shape()[0], static_cast<int64_t>(dense.size())});
  const auto from = raw.as<double>();
  const auto to = made.as<float>();
  for (size_t at = 0, i = 0; at < to.size();)
    for (size_t c = 0; c < dense.size(); ++c, ++i) {
      const bool there = std::abs(from[i]) <= 3.4028234663852886e38;
      to[at++] = there ? static_cast<float>((from[i] - dense[c].mean) * (1 / dense[c].deviation)) : 0.0f;
      if (c + 1 < dense.size() && dense[c + 1].flag) {
        to[at++] = there ? 0.0f : 1.0f;
        ++c;
      }
    }
  return made;
}

}  // namespace

TEST_CASE("a table's raw rows and graph give what its encoder gives, bit for bit, missing values included") {
  const auto samples = people();
  const task::Recipe recipe;
  const auto input =
      learnt_table(samples, settled_input("table", {{"categories", std::vector<std::string>{"zone"}}}));
  const auto fields = input->fields();
  REQUIRE(fields.size() == 2);
  CHECK(fields[0].name == "numbers");
  CHECK(fields[0].type == Type{f64, {Dim::named("batch"), 2}});
  CHECK(fields[1].type == Type{i64, {Dim::named("batch"), 2}});

  const auto part = input->part(reading_of(recipe, samples), task::Purpose::evaluation);
  const std::vector<Array> raw = rows_of(*part, *samples);
  CHECK(raw[0].as<double>()[0] == 20);
  CHECK(std::isnan(raw[0].as<double>()[2 * 2 + 1]));
  const std::vector<Array> given = graph_of(*input, raw, true);
  const auto encoder = data::TableEncoder::parse(input->encoding());
  REQUIRE(given.size() == 2);
  CHECK(given[0].shape() == Shape{40, 3});  // age, gain, and whether gain is missing
  CHECK(same_bits(given[0], standardised(encoder, raw[0])));
  CHECK(same_bits(given[1], raw[1]));

  // Rows that are read together are those read one by one.
  Array numbers(f64, raw[0].shape()), ids(i64, raw[1].shape());
  encoder.read_raw(*samples, 0, samples->count(), numbers.as<double>().data(), ids.as<int64_t>().data());
  CHECK(same_bits(numbers, raw[0]));
  CHECK(same_bits(ids, raw[1]));

  nn::ModelOptions options;
  input->describe(options);
  CHECK(options.numbers == 3);
  CHECK(options.ids == std::vector<int64_t>{4, 4});
  const auto texts = input->exported_texts();
  REQUIRE(texts.size() == 2);
  CHECK(texts[1].field == "ids");
  CHECK(texts[1].column == 1);
  CHECK(texts[1].name == "work");
  std::map<std::string, int64_t> ids_of(texts[1].ids.begin(), texts[1].ids.end());
  CHECK(ids_of.at("Private") == 1);
  CHECK(ids_of.at("") == 2);
  CHECK(ids_of.at("N/A") == 2);  // missing, as the encoder has it
  CHECK(ids_of.at("State-gov") == 3);
}

TEST_CASE("a table's encoding is all that it needs: loaded, it makes the same of other rows") {
  const auto samples = people();
  const task::Recipe recipe;
  const auto section = settled_input("table");
  const auto input = learnt_table(samples, section);
  const auto loaded = task::input_kinds().at("table").load(section, input->encoding());
  CHECK(loaded->encoding() == input->encoding());
  CHECK(loaded->text_columns() == std::vector<std::string>{"work"});
  // Other columns' order, a text of no vocabulary, an infinite number, no target.
  const auto others = std::make_shared<RowsDataset>(
      "others",
      std::vector<data::Column>{{"work", ColumnKind::text},
                                {"zone", ColumnKind::integer},
                                {"gain", ColumnKind::real},
                                {"age", ColumnKind::integer}},
      std::vector<std::vector<data::Value>>{{std::string("Never-worked"), int64_t{1}, INFINITY, int64_t{39}},
                                            {std::string("Private"), int64_t{2}, 1.5, {}}});
  const auto part = loaded->part(reading_of(recipe, others), task::Purpose::prediction);
  const std::vector<Array> raw = rows_of(*part, *others);
  CHECK(values_of<int64_t>(raw[1]) == std::vector<int64_t>{0, 1});
  CHECK(same_bits(graph_of(*loaded, raw, false)[0],
                  standardised(data::TableEncoder::parse(input->encoding()), raw[0])));
  CHECK(loaded->text(raw) == "age 39, gain inf, zone 1, work unknown");

  const auto fewer =
      std::make_shared<RowsDataset>("fewer", std::vector<data::Column>{{"age", ColumnKind::integer}},
                                    std::vector<std::vector<data::Value>>{});
  CHECK(refusal([&] {
          (void)loaded->part(reading_of(recipe, fewer), task::Purpose::prediction);
        }).find("fewer") == 0);
  CHECK(!refusal([&] { (void)task::input_kinds().at("table").load(section, "{}"); }).empty());
}

TEST_CASE("in training some ids of a table are those of unknown values, by seed, epoch and position alone") {
  const task::Recipe recipe;
  const auto samples = people(2000);  // three kinds of work, missing is one, none of them rare
  const auto input = learnt_table(samples, settled_input("table"));
  const auto loaded = task::input_kinds().at("table").load(input->section(), input->encoding());
  const auto made = [&](const task::Input& from, task::Purpose purpose, int64_t epoch) {
    return values_of<int64_t>(rows_of(*from.part(reading_of(recipe, samples), purpose), *samples, epoch)[1]);
  };
  const std::vector<int64_t> as_they_are = made(*input, task::Purpose::evaluation, 0),
                             first = made(*input, task::Purpose::training, 0),
                             second = made(*input, task::Purpose::training, 1);
  REQUIRE(first.size() == 2000);
  CHECK(std::count(as_they_are.begin(), as_they_are.end(), 0) == 0);
  CHECK(as_they_are == made(*input, task::Purpose::prediction, 0));
  for (const auto* ids : {&first, &second}) {
    // 40 of 2,000, give or take four deviations; all others are what they were.
    const auto hidden = std::count(ids->begin(), ids->end(), 0);
    CHECK(hidden > 15);
    CHECK(hidden < 65);
    for (size_t i = 0; i < ids->size(); ++i) CHECK(((*ids)[i] == 0 || (*ids)[i] == as_they_are[i]));
  }
  CHECK(first != second);
  CHECK(first == made(*loaded, task::Purpose::training, 0));

  // Where values are rare enough, these teach it.
  std::vector<std::vector<data::Value>> rows;
  for (int64_t i = 0; i < 300; ++i)
    rows.push_back({std::string(i % 30 ? "usual" : "once " + std::to_string(i)), i * 7 % 290});
  const auto rare = std::make_shared<RowsDataset>(
      "rare", std::vector<data::Column>{{"work", ColumnKind::text}, {"age", ColumnKind::integer}},
      std::move(rows));
  const auto other = learnt_table(rare, settled_input("table"));
  const auto ids =
      values_of<int64_t>(rows_of(*other->part(reading_of(recipe, rare), task::Purpose::training), *rare)[1]);
  CHECK(std::count(ids.begin(), ids.end(), 0) == 10);
}

TEST_CASE("the recipe says which columns a table takes") {
  const auto samples = people();
  const auto names = [&](const std::vector<std::pair<std::string, SettingValue>>& settings) {
    return data::TableEncoder::parse(learnt_table(samples, settled_input("table", settings))->encoding())
        .columns();
  };
  using Names = std::vector<std::string>;
  CHECK(names({}) == Names{"age", "gain", "zone", "work"});
  CHECK(names({{"columns", Names{"work", "age"}}}) == Names{"age", "work"});
  CHECK(names({{"leave_out", Names{"zone"}}}) == Names{"age", "gain", "work"});
  CHECK(refusal([&] { names({{"columns", Names{"aeg"}}}); }).find("'age'") != std::string::npos);
  CHECK(refusal([&] { names({{"leave_out", Names{"aeg"}}}); }).find("'age'") != std::string::npos);
  const auto& kind = task::input_kinds().at("table");
  const task::Recipe recipe;
  CHECK(
      refusal([&] {
        kind.check(settled_input("table", {{"columns", Names{"age"}}, {"leave_out", Names{"work"}}}), recipe);
      }) == "input.columns and input.leave_out both say which columns are used: give one");
  CHECK(kind.recognise(*samples, {"rich", "work"}) == Names{"age", "gain", "zone"});
  CHECK(kind.draft(*samples, {"age", "gain", "zone", "work"}).find("categories = [\"zone\"]") !=
        std::string::npos);
  // No numbers at all: one array.
  const auto texts = learnt_table(samples, settled_input("table", {{"columns", Names{"work"}}}));
  CHECK(texts->fields().size() == 1);
  const auto raw = rows_of(*texts->part(reading_of(recipe, samples), task::Purpose::training), *samples);
  CHECK(texts->text(std::vector<Array>{raw[0]}) == "work \"State-gov\"");
  CHECK(same_bits(graph_of(*texts, raw, false)[0], raw[0]));
}

TEST_CASE(
    "a CSV file to be predicted is read as training read its own: texts are texts, a first line are names") {
  const TempFolder folder;
  std::string rows = "size,code\n";
  for (int i = 0; i < 30; ++i) rows += fmt::format("{},{}\n", 3 * (29 - i), i % 3 ? "007" : "x7");
  write_file(folder / "train.csv", rows);
  write_file(folder / "one.csv", "size,code\n3,007\n");
  const std::shared_ptr<const data::Dataset> samples = data::open_dataset((folder / "train.csv").string());
  const task::Recipe recipe;
  const auto input = learnt_table(samples, settled_input("table"));
  const auto one = input->open(recipe, {(folder / "one.csv").string()});
  REQUIRE(one->count() == 1);
  const auto raw = rows_of(*input->part(reading_of(recipe, one), task::Purpose::prediction), *one);
  CHECK(values_of<double>(raw[0]) == std::vector<double>{3});
  CHECK(values_of<int64_t>(raw[1]) == std::vector<int64_t>{1});
}

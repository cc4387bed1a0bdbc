#include "data/tools/convert.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <millrace/error.h>

#include "support/rows_dataset.h"

using namespace millrace;
using namespace millrace::data;

namespace {

/// Gives whole columns, too.
class RunsDataset final : public testing::RowsDataset {
 public:
  using RowsDataset::RowsDataset;
  mutable int runs = 0;
  bool read_run(int64_t first, int64_t count, std::span<const size_t> columns,
                std::vector<ColumnValues>& values) const override {
    ++runs;
    for (const size_t column : columns) {
      ColumnValues& own = values.emplace_back();
      own.kind = ColumnKind::integer;
      for (int64_t i = first; i < first + count; ++i) {
        const Value value = read(i, column);
        own.present.push_back(!std::holds_alternative<std::monostate>(value));
        const auto* integer = std::get_if<int64_t>(&value);
        own.integers.push_back(integer ? *integer : 0);
      }
    }
    return true;
  }
};

std::string words_of(const Value& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* text = std::get_if<std::string>(&value)) return "'" + *text + "'";
  return std::holds_alternative<std::monostate>(value) ? "-" : "?";
}

class ListWriter final : public DatasetWriter {
 public:
  void add(std::span<const Value> values) override {
    CHECK(!finished);
    std::string& row = rows.emplace_back();
    for (const Value& value : values) row += (row.empty() ? "" : " ") + words_of(value);
  }
  void finish() override { finished = true; }
  std::vector<std::string> rows;
  bool finished = false;
};

const std::vector<Column> columns_of_pets = {
    {"kind", ColumnKind::integer}, {"name", ColumnKind::text}, {"age", ColumnKind::integer}};

}  // namespace

TEST_CASE("columns are chosen by name in that order, or all") {
  const testing::RowsDataset pets("pets", columns_of_pets, {});
  CHECK(choose_columns(pets, {}) == std::vector<size_t>{0, 1, 2});
  CHECK(choose_columns(pets, {"age", "kind"}) == std::vector<size_t>{2, 0});
  CHECK_THROWS_AS((void)choose_columns(pets, {"kinds"}), InputError);
  CHECK(columns_at(pets, {2, 1}) == std::vector<Column>{columns_of_pets[2], columns_of_pets[1]});
  // Without names of classes numbers stay numbers.
  CHECK(columns_at(pets, {0}, true) == std::vector<Column>{columns_of_pets[0]});
}

TEST_CASE("every sample is copied with its chosen columns, and counted") {
  std::vector<std::vector<Value>> rows;
  for (int64_t i = 0; i < 2500; ++i)
    rows.push_back({i % 2, std::string(1, 'a' + static_cast<char>(i % 26)), i});
  rows[7][1] = {};
  const testing::RowsDataset pets("pets", columns_of_pets, rows);
  ListWriter writer;
  std::vector<int64_t> done;
  copy_samples(pets, {2, 1}, writer, [&](int64_t i, int64_t of) {
    CHECK(of == 2500);
    done.push_back(i);
  });
  CHECK(writer.finished);
  REQUIRE(writer.rows.size() == 2500);
  CHECK(writer.rows[7] == "7 -");
  CHECK(writer.rows[2499] == "2499 'd'");
  CHECK(done.size() == 2500);
  CHECK(done.back() == 2500);
}

TEST_CASE("numbers of classes become their names where a format has these, also from whole columns") {
  const std::vector<std::vector<Value>> rows = {{int64_t{1}, std::string("x"), int64_t{1}},
                                                {int64_t{0}, std::string("y"), int64_t{0}},
                                                {Value(), std::string("z"), Value()}};
  for (const bool whole : {false, true}) {
    CAPTURE(whole);
    const testing::RowsDataset one("pets", {columns_of_pets[0], columns_of_pets[1], columns_of_pets[2]}, rows,
                                   {"cat", "dog"});
    const RunsDataset runs("pets", {columns_of_pets[0], columns_of_pets[1], columns_of_pets[2]}, rows,
                           {"cat", "dog"});
    const Dataset& pets = whole ? static_cast<const Dataset&>(runs) : one;
    CHECK(columns_at(pets, {0}, true)[0].kind == ColumnKind::text);
    CHECK(columns_at(pets, {0}, false)[0].kind == ColumnKind::integer);
    CHECK(columns_at(pets, {1}, true)[0].kind == ColumnKind::text);
    ListWriter named, numbered;
    copy_samples(pets, {0, 2}, named, {}, true);
    CHECK(named.rows == std::vector<std::string>{"'dog' 'dog'", "'cat' 'cat'", "- -"});
    copy_samples(pets, {0, 2}, numbered);
    CHECK(numbered.rows == std::vector<std::string>{"1 1", "0 0", "- -"});
    CHECK(runs.runs == (whole ? 2 : 0));
  }
  for (const int64_t wrong : {int64_t{-1}, int64_t{2}}) {
    const testing::RowsDataset pets("pets", {columns_of_pets[0]}, {{wrong}}, {"cat", "dog"});
    ListWriter writer;
    CHECK_THROWS_WITH_AS(copy_samples(pets, {0}, writer, {}, true),
                         fmt::format("{}: its class is {}, and there are 2", pets.name(0), wrong).c_str(),
                         InputError);
    CHECK(!writer.finished);
  }
}

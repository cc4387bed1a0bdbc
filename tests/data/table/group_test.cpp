#include "data/table/group.h"

#include <doctest/doctest.h>
#include <numeric>

#include <millrace/dataset.h>
#include <millrace/error.h>

#include "base/file.h"
#include "data/formats/open_dataset.h"
#include "data/table/elements.h"
#include "data/table/join.h"
#include "data/table/read_columns.h"
#include "data/table/select.h"
#include "support/datasets.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

std::shared_ptr<const Dataset> table_of(const std::vector<int64_t>& queries, int64_t first = 0) {
  std::vector<std::vector<Value>> rows;
  for (size_t i = 0; i < queries.size(); ++i) rows.push_back({queries[i], first + static_cast<int64_t>(i)});
  return memory_dataset("table", {{"query", ColumnKind::integer}, {"row", ColumnKind::integer}},
                        std::move(rows));
}

std::vector<int64_t> rows_in(const Dataset& samples, int64_t index) {
  const SampleRows own = samples.rows(index);
  return {own.rows.begin(), own.rows.end()};
}

std::vector<int64_t> numbers_in(const Dataset& dataset, size_t column) {
  const auto values = read_columns(dataset, 0, dataset.count(), {&column, 1});
  return values[0].integers;
}

}  // namespace

TEST_CASE("queries are known by the names of their column") {
  const auto column = [](const char* name, ColumnKind kind) {
    const Value value = kind == ColumnKind::text   ? Value(std::string("a"))
                        : kind == ColumnKind::real ? Value(1.0)
                                                   : Value(int64_t{1});
    return query_column(*memory_dataset("table", {{name, kind}}, {{value}, {Value()}}));
  };
  for (const char* name : {"qid", "query_id"})
    for (const ColumnKind kind : {ColumnKind::integer, ColumnKind::text}) CHECK(column(name, kind) == name);
  CHECK(column("query", ColumnKind::integer) == "query");
  CHECK(column("query", ColumnKind::text) == "");
  CHECK(column("qid", ColumnKind::real) == "");
  // Rows that are numbered belong to nobody.
  std::vector<int64_t> rows(30);
  std::iota(rows.begin(), rows.end(), 0);
  CHECK(query_column(*table_of(rows)) == "");
  rows.back() = 3;
  CHECK(query_column(*table_of(rows)) == "query");
  CHECK(query_column(*grouped(table_of(rows), "query")) == "query");
  CHECK(query_column(*table_of({1, 2, 3})) == "query");
}

TEST_CASE("rows of one value are one sample, wherever they stand") {
  const auto samples = grouped(table_of({7, 3, 7, 7, 5, 3}), "query");
  REQUIRE(samples->count() == 3);
  CHECK(rows_in(*samples, 0) == std::vector<int64_t>{0, 2, 3});
  CHECK(rows_in(*samples, 1) == std::vector<int64_t>{1, 5});
  CHECK(rows_in(*samples, 2) == std::vector<int64_t>{4});
  CHECK(group_sizes(*samples) == std::vector<int64_t>{3, 2, 1});
  CHECK(samples->name(1) == "table: query 3");
  // A sample reads as its first row.
  CHECK(same(samples->read(1, 1), int64_t{1}));
  CHECK(numbers_in(*rows_of(*samples), 1) == std::vector<int64_t>{0, 2, 3, 1, 5, 4});
}

TEST_CASE("samples of several rows can be chosen and joined like others") {
  const auto samples = grouped(table_of({7, 3, 7, 7, 5, 3}), "query");
  const auto some = select(samples, {2, 0});
  CHECK(rows_in(*some, 1) == std::vector<int64_t>{0, 2, 3});
  CHECK(numbers_in(*rows_of(*some), 1) == std::vector<int64_t>{4, 0, 2, 3});
  const auto both = join({{"a", slice(samples, 1, 2)}, {"b", grouped(table_of({7, 8}, 100), "query")}});
  CHECK(group_sizes(*both) == std::vector<int64_t>{2, 1, 1, 1});
  CHECK(numbers_in(*rows_of(*both), 1) == std::vector<int64_t>{1, 5, 4, 100, 101});
}

TEST_CASE("rows without a group, and columns that make none, are refused by name") {
  const std::shared_ptr<const Dataset> shared =
      memory_dataset("table", {{"query", ColumnKind::integer}, {"x", ColumnKind::array}},
                     {{int64_t{1}, Value()}, {Value(), Value()}});
  CHECK(refusal([&] { (void)grouped(shared, "query"); }).find("has no query") != std::string::npos);
  CHECK(refusal([&] { (void)grouped(shared, "x"); }).find("'x' holds arrays") != std::string::npos);
  CHECK(refusal([&] { (void)grouped(shared, "quer"); }).find("query") != std::string::npos);
}

TEST_CASE("features of LIBSVM are columns of numbers, by the numbers that the file gives them") {
  const TempFolder folder;
  write_file(folder / "a.svm", "1 qid:4 1:0.5 3:-2\n0 qid:4 2:1\n");
  const std::shared_ptr<const Dataset> file = open_dataset(folder / "a.svm");
  const auto spread = spread_arrays(file, {"features[0]", "features[5]", "other"});
  std::vector<std::string> names;
  for (const Column& column : spread->columns()) names.push_back(column.name);
  CHECK(names == std::vector<std::string>{"label", "features[0]", "features[1]", "features[2]", "features[3]",
                                          "features[5]", "query"});
  std::vector<size_t> all(names.size());
  for (size_t c = 0; c < all.size(); ++c) all[c] = c;
  const auto values = read_columns(*spread, 0, 2, all);
  const std::vector<std::vector<double>> wanted = {{0, 0}, {0.5, 0}, {0, 1}, {-2, 0}, {0, 0}};
  for (size_t k = 0; k < wanted.size(); ++k) {
    CHECK(values[k + 1].reals == wanted[k]);
    for (int64_t i = 0; i < 2; ++i) CHECK(same(spread->read(i, k + 1), wanted[k][static_cast<size_t>(i)]));
  }
  CHECK(values[0].integers == std::vector<int64_t>{1, 0});
  CHECK(values.back().integers == std::vector<int64_t>{4, 4});
  // What has no such arrays stays as it is.
  const auto plain = table_of({1});
  CHECK(spread_arrays(plain) == plain);
}

#include <atomic>
#include <doctest/doctest.h>
#include <filesystem>
#include <random>

#include <millrace/dataset.h>
#include <millrace/error.h>

#include "base/file.h"
#include "base/parallel_for.h"
#include "data/formats/formats.h"
#include "data/formats/open_dataset.h"
#include "data/tools/verify.h"
#include "support/datasets.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

const std::vector<Column> columns = {{"i", ColumnKind::integer}, {"r", ColumnKind::real},
                                     {"t", ColumnKind::text},    {"a", ColumnKind::array},
                                     {"raw", ColumnKind::bytes}, {"j", ColumnKind::json}};

std::vector<Value> row(int64_t i) {
  if (i % 7 == 3) return std::vector<Value>(columns.size());
  return {i,
          0.5 * static_cast<double>(i),
          std::string("text ") + std::to_string(i % 1000),
          Array::full(f32, {i % 5}, static_cast<double>(i)),
          bytes_value(std::string(static_cast<size_t>(i % 3), '\1')),
          std::string("[1]")};
}

}  // namespace

TEST_CASE("Parquet and Arrow files: many batches, read by many threads at once, value by value and in runs") {
  const TempFolder folder;
  // More rows than a batch holds.
  constexpr int64_t count = 150'000;
  for (const char* name : {"x.parquet", "x.arrow", "x.arrows"}) {
    CAPTURE(name);
    const auto writer =
        formats().at(std::string(name) == "x.parquet" ? "parquet" : "arrow").create(folder / name, columns);
    for (int64_t i = 0; i < count; ++i) writer->add(row(i));
    writer->finish();
    const auto dataset = open_dataset(folder / name);
    REQUIRE(dataset->count() == count);
    std::atomic<int64_t> wrong{0};
    parallel_for(4000, 4, [&](int64_t k) {
      const int64_t i = k * 7919 % count;
      const auto wanted = row(i);
      for (size_t c = 0; c < 5; ++c) wrong += !same(dataset->read(i, c), wanted[c]);
    });
    CHECK(wrong == 0);
    // Across the border of two batches, columns in another order.
    std::vector<ColumnValues> values;
    const std::vector<size_t> chosen = {3, 0, 4};
    REQUIRE(dataset->read_run(65'000, 2000, chosen, values));
    for (size_t k = 0; k < chosen.size(); ++k) {
      const auto shared = std::make_shared<const ColumnValues>(values[k]);
      REQUIRE(shared->size() == 2000);
      for (size_t i = 0; i < 2000; ++i)
        wrong += !same(value_at(shared, i), row(65'000 + static_cast<int64_t>(i))[chosen[k]]);
    }
    CHECK(wrong == 0);
    for (const int64_t row : {int64_t{-1}, count, 2 * count}) {
      CHECK_THROWS_WITH_AS((void)dataset->read(row, 0), doctest::Contains("there is no row"), InputError);
      CHECK_THROWS_AS((void)dataset->has(row, 0), InputError);
    }
    CHECK_THROWS_AS(dataset->read_run(count - 1, 2, chosen, values), InputError);
  }
}

TEST_CASE("changed bytes of a Parquet file are found where they are read, and by verification") {
  const TempFolder folder;
  const std::string path = folder / "x.parquet";
  const auto writer =
      formats().at("parquet").create(path, {{"i", ColumnKind::integer}, {"raw", ColumnKind::bytes}});
  std::mt19937_64 random(3);
  constexpr int64_t count = 100'000;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t number = random();
    writer->add(std::vector<Value>{i, bytes_value({reinterpret_cast<const char*>(&number), sizeof number})});
  }
  writer->finish();
  CHECK(verify(*open_dataset(path)).bad.empty());
  std::string content = read_text(path);
  content[content.size() * 4 / 5] ^= 1;  // within the last row group
  write_file(path, content);
  const auto dataset = open_dataset(path);
  const VerifyResult result = verify(*dataset);
  REQUIRE(!result.bad.empty());
  CHECK(result.bad.size() < count);
  CHECK(result.bad[0].index > 0);
  CHECK(result.bad.back().index == count - 1);
  CHECK(result.bad[0].why.find("x.parquet: cannot be read:") != std::string::npos);
  CHECK_THROWS_AS((void)dataset->read(count - 1, 1), InputError);
  CHECK(std::get<int64_t>(dataset->read(count - 1, 0)) == count - 1);
}

TEST_CASE("what Parquet cannot hold is refused by column and sample") {
  const TempFolder folder;
  const auto refused = [&](const Value& first, const Value& second, ColumnKind kind) {
    return refusal([&] { write_rows("parquet", folder / "x.parquet", {{"c", kind}}, {{first}, {second}}); });
  };
  const Array vector = Array::full(f32, {2}, 1), matrix = Array::full(f32, {2, 2}, 1),
              whole = Array::full(i64, {2}, 1);
  CHECK(refused(vector, matrix, ColumnKind::array).find("sample 1: the column 'c' is f32[2, 2]") !=
        std::string::npos);
  CHECK(refused(vector, whole, ColumnKind::array).find("numbers of type i64, the first sample's are f32") !=
        std::string::npos);
  CHECK(refused(std::string("a"), std::string("\xff"), ColumnKind::text).find("not UTF-8") !=
        std::string::npos);
  CHECK(!std::filesystem::exists(folder / "x.parquet"));
}

TEST_CASE("JSON lines come back as they were written") {
  const TempFolder folder;
  const std::vector<Column> texts = {
      {"i", ColumnKind::integer}, {"t", ColumnKind::text}, {"j", ColumnKind::json}};
  const Rows rows = {{int64_t{1}, std::string("a\n\"é"), std::string("{\"k\":[1,null]}")},
                     {Value(), Value(), Value()},
                     {INT64_MIN, std::string(), std::string("[]")}};
  write_rows("jsonl", folder / "x.jsonl", texts, rows);
  const auto dataset = open_dataset(folder / "x.jsonl");
  CHECK(dataset->columns() == texts);
  CHECK(difference(read_rows(*dataset), rows) == "");
}

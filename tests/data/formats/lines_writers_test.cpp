// Writing LIBSVM and plain text.
#include <cmath>
#include <doctest/doctest.h>
#include <filesystem>

#include <millrace/dataset.h>
#include <millrace/error.h>

#include "base/file.h"
#include "data/formats/open_dataset.h"
#include "support/datasets.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

Array floats(const std::vector<double>& values) {
  return Array::of(f32, {static_cast<int64_t>(values.size())}, values);
}

}  // namespace

TEST_CASE("lines: the mark of UTF-8 at a file's beginning is none of its first text") {
  const TempFolder folder;
  write_file(folder / "x.txt", "\xef\xbb\xbfone\r\n\xef\xbb\xbftwo\n");
  const std::string one = "one", two = "\xef\xbb\xbftwo";
  CHECK(difference(read_rows(*open_dataset(folder / "x.txt")), {{one}, {two}}) == "");
  write_file(folder / "x.jsonl", "\xef\xbb\xbf{\"a\": \"one\"}\n");
  CHECK(difference(read_rows(*open_dataset(folder / "x.jsonl")), {{one}}) == "");
}

TEST_CASE("LIBSVM comes back as it was written, queries in a file beside it or in the rows") {
  const TempFolder folder;
  const std::string path = folder / "x.libsvm";
  const std::vector<Column> columns = {
      {"label", ColumnKind::integer}, {"features", ColumnKind::array}, {"query", ColumnKind::integer}};
  // The last feature is nowhere but zero.
  const auto rows = [](std::vector<int64_t> queries) {
    return Rows{{int64_t{1}, floats({0.1, 0, -3e-20, 0}), queries[0]},
                {int64_t{0}, floats({0, 0, 0, 0}), queries[1]},
                {int64_t{2}, floats({0, 16777217, 0, 0}), queries[2]}};
  };
  write_rows("libsvm", path, columns, rows({0, 0, 1}));
  CHECK(read_text(path + ".query") == "2\n1\n");
  CHECK(read_text(path).find("qid") == std::string::npos);
  CHECK(difference(read_rows(*open_dataset(path)), rows({0, 0, 1})) == "");
  for (const auto& queries : {std::vector<int64_t>{4, 4, 9}, {0, 1, 0}, {1, 2, 3}}) {
    write_rows("libsvm", path, columns, rows(queries));
    CHECK(!std::filesystem::exists(path + ".query"));
    CHECK(difference(read_rows(*open_dataset(path)), rows(queries)) == "");
  }
}

TEST_CASE("LIBSVM of many features, and of real labels") {
  const TempFolder folder;
  const std::string path = folder / "x.libsvm";
  const auto indices = [](const std::vector<double>& values) {
    return Array::of(i32, {static_cast<int64_t>(values.size())}, values);
  };
  const std::vector<Column> columns = {
      {"label", ColumnKind::real}, {"indices", ColumnKind::array}, {"values", ColumnKind::array}};
  const Rows rows = {{0.25, indices({0, 5, 100'000}), floats({1, 0, 2})}, {-1.0, indices({}), floats({})}};
  write_rows("libsvm", path, columns, rows);
  CHECK(difference(read_rows(*open_dataset(path)), rows) == "");
}

TEST_CASE("LIBSVM and text refuse what they cannot hold, and write nothing then") {
  const TempFolder folder;
  const std::string path = folder / "x";
  const auto problem = [&](const char* format, const std::vector<Column>& columns, const Rows& rows) {
    return refusal([&] { write_rows(format, path, columns, rows); });
  };
  const Column label{"label", ColumnKind::real}, features{"features", ColumnKind::array},
      text{"text", ColumnKind::text};
  CHECK(problem("libsvm", {label}, {}).find("needs a label, and features") != std::string::npos);
  CHECK(problem("libsvm", {label, features, text}, {}).find("no place for the column 'text'") !=
        std::string::npos);
  CHECK(problem("libsvm", {label, features}, {{1.0, floats({NAN})}}).find("feature 0 is no finite number") !=
        std::string::npos);
  CHECK(problem("libsvm", {label, features}, {{Value(), floats({1})}}).find("has no label") !=
        std::string::npos);
  CHECK(problem("text", {text, label}, {}).find("no place for the column 'label'") != std::string::npos);
  CHECK(problem("text", {text}, {{std::string("a\nb")}}).find("several lines") != std::string::npos);
  CHECK(problem("text", {text}, {{std::string("a\r")}}).find("several lines") != std::string::npos);
  CHECK(problem("text", {text}, {{Value()}}).find("has no text") != std::string::npos);
  CHECK(std::filesystem::is_empty(folder.path()));
  const Rows lines = {{std::string("a")}, {std::string()}, {std::string(" b\t")}};
  write_rows("text", folder / "x.txt", {text}, lines);
  CHECK(difference(read_rows(*open_dataset(folder / "x.txt")), lines) == "");
}

TEST_CASE("lines that begin where a part of the file begins are read, once") {
  // Lines of 8 bytes: parts of 4 MiB end with one.
  const TempFolder folder;
  constexpr int64_t count = (4 << 20) / 8 + 5;
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += i % 2 ? "1 1:0.5\n" : "0 1:0.5\n";
  write_file(folder / "x.libsvm", text);
  const auto dataset = open_dataset((folder / "x.libsvm").string());
  REQUIRE(dataset->count() == count);
  const size_t label = dataset->column("label");
  for (int64_t i = count - 8; i < count; ++i) CHECK(std::get<int64_t>(dataset->read(i, label)) == i % 2);
}

TEST_CASE("JSON lines: words for what is missing, and a bad value, leave a column of numbers one") {
  const TempFolder folder;
  const auto open_lines = [&](const std::string& text) {
    write_file(folder / "x.jsonl", text);
    return open_dataset(folder / "x.jsonl");
  };
  std::string lines;
  for (int i = 0; i < 250; ++i)
    lines += "{\"a\": " +
             (i == 7   ? "\"n/a\""
              : i == 9 ? "\"many\""
                       : std::to_string(i)) +
             ", \"b\": " + (i % 2 ? "\"NA\"" : "0.5") + ", \"c\": " + (i % 9 ? "1" : "\"x\"") +
             ", \"d\": " + (i % 2 ? "\"-\"" : "\"t\"") + "}\n";
  const auto set = open_lines(lines);
  REQUIRE(set->columns().size() == 4);
  CHECK(set->columns()[0] == Column{"a", ColumnKind::integer});
  CHECK(set->columns()[1] == Column{"b", ColumnKind::real});
  CHECK(set->columns()[2] == Column{"c", ColumnKind::text});
  CHECK(set->columns()[3] == Column{"d", ColumnKind::text});
  CHECK(same(set->read(6, 0), int64_t{6}));
  CHECK(same(set->read(7, 0), Value()));
  CHECK(same(set->read(9, 0), Value()));
  CHECK(same(set->read(1, 1), Value()));
  CHECK(same(set->read(2, 1), 0.5));
  REQUIRE(set->notes().size() == 2);
  CHECK(set->notes()[0].find("a: 1 of 249 values is no number (the first: 'many' in ") != std::string::npos);
  CHECK(set->notes()[0].ends_with("and counts as missing"));
  CHECK(set->notes()[1].find("c: 28 of 250 values are no numbers (the first: 'x' in ") != std::string::npos);
  CHECK(set->notes()[1].ends_with("and its values are texts"));
}

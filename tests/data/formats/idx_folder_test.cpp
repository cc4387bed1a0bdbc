// IDX files and folders of files as data sets with columns.
#include <doctest/doctest.h>
#include <filesystem>

#include <millrace/error.h>

#include "base/file.h"
#include "data/formats/open_dataset.h"
#include "data/table/index.h"
#include "data/table/query.h"
#include "data/tools/verify.h"
#include "support/datasets.h"
#include "support/labelled.h"
#include "support/pictures.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

Value pixels(int height, int width, int channels, int first) {
  std::vector<uint8_t> bytes;
  for (int i = 0; i < height * width * channels; ++i) bytes.push_back(static_cast<uint8_t>(first + i));
  return Pixels{height, width, channels, Bytes(std::move(bytes))};
}

}  // namespace

TEST_CASE("IDX comes back as it was written: pictures with labels, arrays, numbers") {
  const TempFolder folder;
  const std::vector<Column> columns = {{"image", ColumnKind::picture}, {"label", ColumnKind::integer}};
  for (const int channels : {1, 3}) {
    const std::string path = folder / (channels == 1 ? "t-images-idx3-ubyte" : "t-images-idx4-ubyte");
    const Rows rows = {{pixels(2, 3, channels, 0), int64_t{7}}, {pixels(2, 3, channels, 100), int64_t{0}}};
    write_rows("idx", path, columns, rows);
    const auto dataset = open_dataset(path);
    CHECK(dataset->format() == "idx");
    CHECK(dataset->columns() == columns);
    CHECK(difference(read_rows(*dataset), rows) == "");
    CHECK(dataset->name(1) == path + "[1]");
    CHECK(open_labelled(path)->classes().size() == 8);
  }
  // Labels beyond a byte, and numbers that are not whole.
  for (const Value& last : {Value(int64_t{-70'000}), Value(int64_t{255})}) {
    const Rows rows = {{pixels(1, 1, 1, 0), int64_t{0}}, {pixels(1, 1, 1, 9), last}};
    write_rows("idx", folder / "l-images-idx3", columns, rows);
    CHECK(difference(read_rows(*open_dataset(folder / "l-images-idx3")), rows) == "");
  }
  const Rows reals = {{0.1}, {-2.5e300}};
  write_rows("idx", folder / "reals.idx1", {{"label", ColumnKind::real}}, reals);
  CHECK(difference(read_rows(*open_dataset(folder / "reals.idx1")), reals) == "");
  for (const DType dtype : {u8, i8, i32, f32, f64}) {
    const Rows arrays = {{Array::of(dtype, {2, 2, 1, 2}, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 100})},
                         {Array::of(dtype, {2, 2, 1, 2}, std::vector<double>{8, 7, 6, 5, 4, 3, 2, 1})}};
    write_rows("idx", folder / "a.idx", {{"data", ColumnKind::array}}, arrays);
    CHECK(difference(read_rows(*open_dataset(folder / "a.idx")), arrays) == "");
  }
}

TEST_CASE("IDX: numbers of two bytes have a sign") {
  const TempFolder folder;
  write_file(folder / "n.idx1", std::string("\0\0\x0b\1\0\0\0\2\xff\xfe\0\3", 12));
  CHECK(difference(read_rows(*open_dataset(folder / "n.idx1")), {{int64_t{-2}}, {int64_t{3}}}) == "");
}

TEST_CASE("IDX: conditions, checksums, several files") {
  const TempFolder folder;
  const std::vector<Column> columns = {{"image", ColumnKind::picture}, {"label", ColumnKind::integer}};
  for (int f = 0; f < 2; ++f)
    write_rows("idx", folder / ("p" + std::to_string(f) + "-images-idx3"), columns,
               {{pixels(2, 3, 1, 0), int64_t{f}}, {pixels(2, 3, 1, 5), int64_t{5}}});
  const auto both = open_dataset(folder / "p{0,1}-images-idx3");
  CHECK(matching(*both, Query::parse("label = 5 or label = 0")) == std::vector<int64_t>{0, 1, 3});
  CHECK(write_indices(*both).size() == 2);
  CHECK(matching(*open_dataset(folder / "p{0,1}-images-idx3"), Query::parse("label > 0")) ==
        std::vector<int64_t>{1, 2, 3});
  CHECK(verify(*both).with_checksum == 4);
  std::string bytes = read_text(folder / "p1-images-idx3");
  bytes.back() ^= 1;
  write_file(folder / "p1-images-idx3", bytes);
  const VerifyResult result = verify(*open_dataset(folder / "p*-images-idx3"));
  REQUIRE(result.bad.size() == 1);
  CHECK(result.bad[0].index == 3);
}

TEST_CASE("IDX refuses what it cannot hold") {
  const TempFolder folder;
  const std::string path = folder / "x-images-idx3";
  const auto problem = [&](const std::vector<Column>& columns, const Rows& rows, const std::string& to) {
    return refusal([&] { write_rows("idx", to, columns, rows); });
  };
  const Column image{"image", ColumnKind::picture}, label{"label", ColumnKind::integer};
  CHECK(problem({image, {"caption", ColumnKind::text}}, {}, path).find("no place for the column 'caption'") !=
        std::string::npos);
  CHECK(problem({image, label}, {}, folder / "x.idx").find("where do the labels go") != std::string::npos);
  CHECK(problem({image}, {}, path + ".gz").find("zip them with gzip") != std::string::npos);
  CHECK(problem({image}, {{pixels(2, 2, 1, 0)}, {pixels(2, 3, 1, 0)}}, path)
            .find("sample 1 is a picture of 3x2") != std::string::npos);
  CHECK(problem({image}, {{bytes_value("no picture")}}, path).find("no good picture") != std::string::npos);
  CHECK(problem({{"a", ColumnKind::array}}, {{Array(i64, {2})}}, path).find("no type for") !=
        std::string::npos);
  CHECK(!std::filesystem::exists(path));
}

TEST_CASE("a folder comes back as it was written, and is a data set") {
  const TempFolder folder;
  const std::vector<Column> columns = {
      {"__key__", ColumnKind::text}, {"label", ColumnKind::text}, {"image", ColumnKind::picture}};
  const Rows rows = {
      {std::string("train/cat/1.jpg"), std::string("cat"), bytes_value(make_jpeg(8, 9, 3, 1))},
      {std::string("train/dog/2.jpg"), std::string("dog"), bytes_value(make_jpeg(8, 8, 3, 2))}};
  write_rows("folder", folder / "set", columns, rows);
  const auto dataset = open_dataset(folder / "set");
  CHECK(dataset->columns() == columns);
  CHECK(difference(read_rows(*dataset), rows) == "");
  CHECK(dataset->name(1) == (folder / "set/train/dog/2.jpg").string());
  CHECK(matching(*dataset, Query::parse("label = 'cat' and width = 9")) == std::vector<int64_t>{0});
  CHECK(open_labelled(folder / "set", "label = 'dog'")->count() == 1);
  CHECK(open_labelled(folder / "set", "label = 'dog'")->classes().size() == 2);
  // Texts, sounds, and bytes without classes; labels make folders where keys have none.
  const Rows texts = {{std::string("a.txt"), std::string("one\ntwo")}, {std::string("b.txt"), std::string()}};
  write_rows("folder", folder / "texts", {{"__key__", ColumnKind::text}, {"text", ColumnKind::text}}, texts);
  CHECK(difference(read_rows(*open_dataset(folder / "texts")), texts) == "");
  write_rows("folder", folder / "bytes", {{"data", ColumnKind::bytes}, {"label", ColumnKind::integer}},
             {{bytes_value("x"), int64_t{3}}, {bytes_value("y"), int64_t{4}}});
  const Rows bytes = {{std::string("3/00000000.bin"), std::string("3"), bytes_value("x")},
                      {std::string("4/00000001.bin"), std::string("4"), bytes_value("y")}};
  CHECK(difference(read_rows(*open_dataset(folder / "bytes")), bytes) == "");
  write_rows("folder", folder / "sounds", {{"audio", ColumnKind::audio}},
             {{bytes_value("RIFF    WAVEfmt ")}});
  CHECK(open_dataset(folder / "sounds")->columns()[1] == Column{"audio", ColumnKind::audio});
  put_file(folder / "sounds/LICENSE", "x");
  CHECK(open_dataset(folder / "sounds")->count() == 1);
}

TEST_CASE("a folder is written whole or not at all, and never outside of itself") {
  const TempFolder folder;
  const std::vector<Column> columns = {{"__key__", ColumnKind::text}, {"data", ColumnKind::bytes}};
  const auto problem = [&](const std::string& key) {
    return refusal([&] { write_rows("folder", folder / "out", columns, {{key, bytes_value("x")}}); });
  };
  for (const char* key : {"../x", "/etc/x", "a/../../x", "", "a/", "."})
    CHECK(problem(key).find("no name of a file in a folder") != std::string::npos);
  CHECK(refusal([&] {
          write_rows("folder", folder / "out", columns,
                     {{std::string("a"), bytes_value("x")}, {std::string("a"), bytes_value("y")}});
        }).find("two samples are called a.bin") != std::string::npos);
  CHECK(std::filesystem::is_empty(folder.path()));
  write_rows("folder", folder / "out", columns, {{std::string("a"), bytes_value("x")}});
  CHECK(problem("b").find("is there already") != std::string::npos);
}

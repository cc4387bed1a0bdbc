// The lists of formats, of files and of streams, and a program's own format.
#include <algorithm>
#include <doctest/doctest.h>
#include <fstream>

#include <millrace/error.h>

#include "base/file.h"
#include "data/formats/formats.h"
#include "data/formats/open_dataset.h"
#include "data/formats/streams/stream.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;

TEST_CASE("formats are tried in the order of their places") {
  std::vector<std::string> names = formats().names();
  std::erase(names, "test-table");
  CHECK(names == std::vector<std::string>{"recordio", "parquet", "arrow", "tfrecord", "mds", "beton",
                                          "webdataset", "csv", "jsonl", "libsvm", "text", "idx", "folder"});
  CHECK(stream_formats().names() ==
        std::vector<std::string>{"tfrecord", "webdataset", "jsonl", "text", "csv"});
}

TEST_CASE("the ending of a file to be written says its format in any case") {
  CHECK(format_by_ending("a/out.tsv") == "csv");
  CHECK(format_by_ending("OUT.CSV") == "csv");
  CHECK(format_by_ending("Out.Txt", true) == "text");
  CHECK(format_by_ending("Out.Txt") == "txt");
  CHECK(format_by_ending("out").empty());
  const testing::TempFolder folder;
  formats()
      .at("csv")
      .create(folder / "OUT.TSV", {{"a", ColumnKind::text}, {"b", ColumnKind::text}})
      ->finish();
  CHECK(read_text(folder / "OUT.TSV") == "a\tb\n");
}

TEST_CASE("a program's own format is recognised and read, before those that would take the file too") {
  const testing::TempFolder folder;
  std::ofstream(folder / "x.csv") << "%%\na,b\n1,2\n3,4\n";
  const Format own{.name = "test-table",
                   .doc = "CSV behind a line of %%",
                   .place = 75,
                   .matches =
                       [](std::string_view, std::span<const uint8_t> head) {
                         return head.size() > 2 && head[0] == '%' && head[1] == '%';
                       },
                   .open =
                       [](const std::string& path, std::vector<std::shared_ptr<const RandomAccessFile>> files,
                          const OpenOptions& options) {
                         const Bytes all = files[0]->read(3, files[0]->size() - 3);
                         const std::vector<uint8_t> table(all.view().begin(), all.view().end());
                         return formats().at("csv").open(path, {memory_file(path, Bytes(table))}, options);
                       }};
  const Format& added = register_format(own);
  CHECK(&added == formats().find("test-table"));
  const auto dataset = open_dataset(folder / "x.csv");
  CHECK(dataset->format() == "test-table");
  CHECK(dataset->count() == 2);
  CHECK(std::get<int64_t>(dataset->read(1, dataset->column("b"))) == 4);
  CHECK_THROWS_WITH_AS(register_format(own), "there is a format 'test-table' already", InputError);
  CHECK_THROWS_WITH_AS(register_format({.name = "test-unread", .matches = own.matches}),
                       "the format 'test-unread' lacks its `open`", InputError);
  CHECK_THROWS_WITH_AS(register_stream_format(
                           {.name = "csv", .matches = own.matches, .make = stream_formats().at("csv").make}),
                       "there is a format of streams 'csv' already", InputError);
}

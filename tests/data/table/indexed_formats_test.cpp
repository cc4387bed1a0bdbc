// Index sidecars of formats other than tar.
#include <doctest/doctest.h>
#include <filesystem>
#include <zlib.h>

#include <millrace/error.h>

#include "base/file.h"
#include "data/formats/open_dataset.h"
#include "data/table/index.h"
#include "data/table/query.h"
#include "data/table/select.h"
#include "data/tools/verify.h"
#include "support/datasets.h"
#include "support/pictures.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

const std::vector<Column> all_columns = {{"label", ColumnKind::integer},
                                         {"score", ColumnKind::real},
                                         {"word", ColumnKind::text},
                                         {"image", ColumnKind::picture},
                                         {"ids", ColumnKind::array}};

Rows all_rows() {
  Rows rows;
  for (int64_t i = 0; i < 7; ++i)
    rows.push_back({i % 3, 0.5 * static_cast<double>(i), std::string(i % 2 ? "odd" : "even"),
                    bytes_value(make_jpeg(8, 8 + static_cast<int>(i), 3, static_cast<int>(i))),
                    Array::of(i64, {2}, std::vector<double>{static_cast<double>(i), 7})});
  return rows;
}

std::unique_ptr<Dataset> open_plain(const std::string& path) {
  OpenOptions options;
  options.use_indices = false;
  return open_dataset(path, options);
}

/// The same data with its index and without: rows, conditions, and a checksum of each sample; a changed byte
/// of a sample is noticed.
void check_indexed(const std::string& path, bool located) {
  CAPTURE(path);
  const auto plain = open_plain(path);
  const auto results = write_indices(*plain);
  REQUIRE(results.size() == plain->files().size());
  const auto indexed = open_dataset(path);
  CHECK(indexed->notes().empty());
  CHECK(indexed->columns() == plain->columns());
  CHECK(difference(read_rows(*indexed), read_rows(*plain)) == "");
  for (int64_t i = 0; i < plain->count(); ++i) CHECK(indexed->name(i) == plain->name(i));
  for (const char* condition : {"label = 2", "word = 'odd' or score > 2", "width >= 10 and height = 8"}) {
    const Query query = Query::parse(condition);
    const auto with = matching(*indexed, query);
    CHECK(with == matching(*plain, query));
    CHECK(!with.empty());
    CHECK(static_cast<int64_t>(with.size()) < plain->count());
  }
  const VerifyResult good = verify(*indexed);
  CHECK(good.with_checksum == (located ? plain->count() : 0));
  CHECK(good.bad.empty());
  if (!located) return;
  const SampleExtent at = *plain->extent(4);
  const std::string file = plain->files()[at.file]->path();
  std::string bytes = read_text(file);
  bytes[at.offset + at.size / 2] ^= 1;
  write_file(file, bytes);
  const VerifyResult bad = verify(*open_dataset(path));
  REQUIRE(bad.bad.size() >= 1);
  bool named = false;
  for (const BadSample& each : bad.bad) named |= each.index == 4;
  CHECK(named);
}

}  // namespace

TEST_CASE("TFRecord, FFCV, MDS, Parquet and Arrow give the same with an index as without") {
  const TempFolder folder;
  Rows rows = all_rows();
  write_rows("tfrecord", folder / "x.tfrecord", all_columns, rows);
  check_indexed(folder / "x.tfrecord", true);
  write_rows("beton", folder / "x.beton", all_columns, rows);
  // Its texts are JSON, which no condition can be about.
  const auto beton = open_plain(folder / "x.beton");
  (void)write_indices(*beton);
  CHECK(verify(*open_dataset(folder / "x.beton")).with_checksum == 7);
  CHECK(matching(*open_dataset(folder / "x.beton"), Query::parse("width > 12 and label = 0")) ==
        std::vector<int64_t>{6});
  write_rows("mds", folder / "mds", all_columns, rows);
  check_indexed(folder / "mds", true);
  write_rows("parquet", folder / "x.parquet", all_columns, rows);
  check_indexed(folder / "x.parquet", false);
  write_rows("arrow", folder / "x.arrow", all_columns, rows);
  check_indexed(folder / "x.arrow", false);
}

TEST_CASE("several TFRecord files open by their indices, and one without opens them all without") {
  const TempFolder folder;
  const Rows rows = all_rows();
  write_rows("tfrecord", folder / "x-0.tfrecord", all_columns, rows);
  write_rows("tfrecord", folder / "x-1.tfrecord", all_columns, Rows(rows.begin(), rows.begin() + 3));
  const std::string both = folder / "x-*.tfrecord";
  const auto plain = open_plain(both);
  CHECK(write_indices(*plain).size() == 2);
  CHECK(difference(read_rows(*open_dataset(both)), read_rows(*plain)) == "");
  std::filesystem::remove(folder / "x-1.tfrecord.mrx");
  CHECK(difference(read_rows(*open_dataset(both)), read_rows(*plain)) == "");
}

TEST_CASE("TFRecord without Examples, with missing features, and compressed, beside an index") {
  const TempFolder folder;
  const std::vector<Column> data = {{"data", ColumnKind::bytes}};
  // A feature that is called as the column of what are no Examples.
  write_rows("tfrecord", folder / "e.tfrecord", data, {{bytes_value({1, 2, 0})}, {bytes_value({3, 0})}});
  (void)write_indices(*open_plain(folder / "e.tfrecord"));
  CHECK(difference(read_rows(*open_dataset(folder / "e.tfrecord")),
                   read_rows(*open_plain(folder / "e.tfrecord"))) == "");
  const std::vector<Column> some = {{"a", ColumnKind::integer}, {"b", ColumnKind::array}};
  const Array floats = Array::of(f32, {3}, std::vector<double>{1, 2, 3});
  write_rows("tfrecord", folder / "s.tfrecord", some,
             {{int64_t{1}, Value()}, {Value(), floats}, {int64_t{2}, floats}});
  (void)write_indices(*open_plain(folder / "s.tfrecord"));
  const auto indexed = open_dataset(folder / "s.tfrecord");
  CHECK(difference(read_rows(*indexed), read_rows(*open_plain(folder / "s.tfrecord"))) == "");
  CHECK(std::get<Array>(indexed->read(2, 1)).dtype() == f32);

  const std::string content = read_text(folder / "s.tfrecord");
  const gzFile zipped = gzopen((folder / "z.tfrecord").c_str(), "wb");
  gzwrite(zipped, content.data(), static_cast<unsigned>(content.size()));
  gzclose(zipped);
  CHECK(refusal([&] { (void)write_indices(*open_plain(folder / "z.tfrecord")); }).find("compressed") !=
        std::string::npos);
}

TEST_CASE("an index that names bytes which are no records is refused, or its samples are") {
  const TempFolder folder;
  write_rows("tfrecord", folder / "x.tfrecord", all_columns, all_rows());
  (void)write_indices(*open_plain(folder / "x.tfrecord"));
  // The same size and time, other records.
  std::string bytes = read_text(folder / "x.tfrecord");
  const auto time = std::filesystem::last_write_time((folder / "x.tfrecord").string());
  for (size_t i = 12; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31);
  write_file(folder / "x.tfrecord", bytes);
  std::filesystem::last_write_time((folder / "x.tfrecord").string(), time);
  CHECK(read_all([&] { return open_dataset(folder / "x.tfrecord"); }).find("unlike its index says") !=
        std::string::npos);
}

#include <doctest/doctest.h>
#include <zlib.h>

#include <millrace/dataset.h>
#include <millrace/error.h>
#include <millrace/file.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/wire.h"
#include "data/formats/formats.h"
#include "data/formats/open_dataset.h"
#include "support/datasets.h"
#include "support/feed_samples.h"
#include "support/labelled.h"
#include "support/pictures.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

const std::vector<Column> columns = {{"whole", ColumnKind::integer}, {"real", ColumnKind::real},
                                     {"text", ColumnKind::text},     {"bytes", ColumnKind::bytes},
                                     {"image", ColumnKind::picture}, {"floats", ColumnKind::array},
                                     {"ints", ColumnKind::array}};

Rows rows() {
  Rows list;
  for (int64_t i = 0; i < 7; ++i) {
    Array floats(f32, {i}), ints(i64, {i + 1});
    for (int64_t k = 0; k < i; ++k) floats.set(k, 0.5 * static_cast<double>(k) - 1);
    for (int64_t k = 0; k <= i; ++k) ints.set_int(k, k == 0 ? INT64_MIN + i : 1000 * k);
    std::string binary(static_cast<size_t>(i * i), '\0');
    list.push_back({i == 2 ? INT64_MAX : -i, 0.25 * static_cast<double>(i), "größe " + std::to_string(i),
                    bytes_value(binary), bytes_value(make_jpeg(8, 8, 3, static_cast<uint64_t>(i))), floats,
                    ints});
  }
  return list;
}

/// A record around any data, with right checksums.
std::string framed(const std::string& data) {
  const uint64_t size = data.size();
  const uint32_t before = masked_crc32c(crc32c(&size, 8)),
                 behind = masked_crc32c(crc32c(data.data(), data.size()));
  return std::string(reinterpret_cast<const char*>(&size), 8) +
         std::string(reinterpret_cast<const char*>(&before), 4) + data +
         std::string(reinterpret_cast<const char*>(&behind), 4);
}

/// As zlib makes it: window bits 15 for zlib, 31 for gzip.
std::string deflated(const std::string& content, int bits) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(content.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<unsigned>(content.size());
  stream.next_out = reinterpret_cast<unsigned char*>(out.data());
  stream.avail_out = static_cast<unsigned>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::unique_ptr<Dataset> open_bytes(const std::string& content) {
  return formats()
      .at("tfrecord")
      .open("t.tfrecord",
            {memory_file("t.tfrecord", Bytes(std::vector<uint8_t>(content.begin(), content.end())))}, {});
}

std::string feature(const std::string& name, const WireWriter& lists) {
  return WireWriter()
      .message(1, WireWriter().message(1, WireWriter().bytes(1, name).message(2, lists)))
      .text();
}

}  // namespace

TEST_CASE("TFRecord comes back as it was written, plain, by gzip, by zlib and in several members") {
  const TempFolder folder;
  const std::string path = folder / "x.tfrecord";
  write_rows("tfrecord", path, columns, rows());
  const auto dataset = open_dataset(path);
  CHECK(dataset->columns() == columns);
  CHECK(difference(read_rows(*dataset), rows()) == "");
  for (int64_t i = 0; i < dataset->count(); ++i) CHECK_NOTHROW(dataset->verify(i));
  const std::string content = read_text(path);
  for (const int bits : {15, 31}) {
    write_file(folder / "z.tfrecord", deflated(content, bits));
    CHECK(difference(read_rows(*open_dataset(folder / "z.tfrecord")), rows()) == "");
  }
  write_file(folder / "z.tfrecord", deflated(content, 31) + deflated(content, 31));
  CHECK(open_dataset(folder / "z.tfrecord")->count() == 14);
}

TEST_CASE("numbers that floats of 32 bits do not hold are refused by TFRecord, infinite ones are not") {
  const TempFolder folder;
  const auto write = [&](double number) {
    const auto writer = formats().at("tfrecord").create(folder / "x.tfrecord", {{"x", ColumnKind::real}});
    writer->add(std::vector<Value>{number});
    writer->finish();
  };
  CHECK_THROWS_WITH_AS(write(1e308), doctest::Contains("sample 0: 1e+308 is more than the floats of 32 bits"),
                       InputError);
  CHECK_NOTHROW(write(INFINITY));
  CHECK_NOTHROW(write(3.4e38));
}

TEST_CASE("missing values of TFRecord stay missing") {
  const TempFolder folder;
  const std::vector<Column> two = {{"a", ColumnKind::integer}, {"b", ColumnKind::text}};
  const Rows list = {{int64_t{1}, "x"}, {std::monostate(), "y"}, {int64_t{3}, std::monostate()}};
  write_rows("tfrecord", folder / "x.tfrecord", two, list);
  const auto dataset = open_dataset(folder / "x.tfrecord");
  CHECK(dataset->columns() == two);
  CHECK(difference(read_rows(*dataset), list) == "");
}

TEST_CASE("protobuf's other ways to write an Example are read") {
  // Numbers one by one instead of packed; a list in two parts; a feature named twice: the last counts;
  // unknown fields.
  WireWriter unpacked;
  unpacked.varint(1, 7).varint(1, 8).varint(9, 1);
  const auto dataset =
      open_bytes(framed(feature("n", WireWriter().message(3, unpacked))) +
                 framed(feature("n", WireWriter().message(3, unpacked).message(3, unpacked))));
  REQUIRE(dataset->columns() == std::vector<Column>{{"n", ColumnKind::array}});
  CHECK(std::get<Array>(dataset->read(0, 0)).to_doubles() == std::vector<double>{7, 8});
  CHECK(std::get<Array>(dataset->read(1, 0)).to_doubles() == std::vector<double>{7, 8, 7, 8});
  const WireWriter one = WireWriter().message(3, WireWriter().varint(1, 1)),
                   two = WireWriter().message(3, WireWriter().varint(1, 2));
  CHECK(std::get<int64_t>(open_bytes(framed(feature("n", one) + feature("n", two)))->read(0, 0)) == 2);
  // A list of several texts is JSON.
  const auto texts =
      open_bytes(framed(feature("t", WireWriter().message(1, WireWriter().bytes(1, "a").bytes(1, "\"b")))));
  CHECK(texts->columns()[0].kind == ColumnKind::json);
  CHECK(std::get<std::string>(texts->read(0, 0)) == R"(["a","\"b"])");
}

TEST_CASE("TFRecord payloads that are no Example are bytes") {
  const auto dataset = open_bytes(framed("hello") + framed("") + framed("\xff\x01"));
  CHECK(dataset->columns() == std::vector<Column>{{"data", ColumnKind::bytes}});
  CHECK(difference(read_rows(*dataset),
                   {{bytes_value("hello")}, {bytes_value("")}, {bytes_value("\xff\x01")}}) == "");
}

TEST_CASE(
    "a flipped byte of TFRecord's data is found by verify, of a length at once, of one record in that "
    "record") {
  const TempFolder folder;
  write_rows("tfrecord", folder / "x.tfrecord", columns, rows());
  std::string content = read_text(folder / "x.tfrecord");
  std::string changed = content;
  changed[changed.size() - 30] ^= 1;
  const auto dataset = open_bytes(changed);
  CHECK_NOTHROW(dataset->verify(0));
  CHECK(refusal([&] { dataset->verify(6); }).find("checksum") != std::string::npos);
  changed = content;
  changed[3] ^= 1;
  CHECK(refusal([&] { open_bytes(changed); }).find("byte 0") != std::string::npos);
  CHECK(refusal([&] { open_bytes(content.substr(0, content.size() - 1)); }).find("cut off") !=
        std::string::npos);
  CHECK(refusal([&] { open_bytes(deflated(content, 31).substr(0, 200)); }).find("it ends early") !=
        std::string::npos);
  for (size_t at = 0; at < content.size(); at += 3) {
    changed = content;
    changed[at] ^= 0x41;
    (void)read_all([&] { return open_bytes(changed); });
    (void)read_all([&] { return open_bytes(content.substr(0, at)); });
  }
}

TEST_CASE("a damaged record of TFRecord does not change the columns") {
  const auto record = [](const std::string& name, const std::string& value) {
    return framed(feature(name, WireWriter().message(1, WireWriter().bytes(1, value))));
  };
  const std::string good = record("text", "abc"), other = record("tex_", "abc"),
                    binary = record("text", "a\x01c");
  for (std::string bad : {other, binary}) {
    bad.back() ^= 1;
    const auto dataset = open_bytes(good + bad + good);
    CHECK(dataset->columns() == std::vector<Column>{{"text", ColumnKind::text}});
    CHECK(!refusal([&] { dataset->verify(1); }).empty());
  }
  CHECK(open_bytes(good + other)->columns().size() == 2);
  CHECK(open_bytes(good + binary)->columns()[0].kind == ColumnKind::bytes);
}

TEST_CASE(
    "a changed byte of a picture in TFRecord makes a bad sample, also where the decoder would not notice") {
  const TempFolder folder;
  const std::string path = folder / "x.tfrecord";
  const std::vector<Column> pair = {{"image", ColumnKind::picture}, {"label", ColumnKind::integer}};
  const auto writer = formats().at("tfrecord").create(path, pair);
  std::string third;
  for (int64_t i = 0; i < 6; ++i) {
    const std::string jpeg = make_jpeg(32, 32, 3, static_cast<uint64_t>(i));
    if (i == 2) third = jpeg;
    writer->add(std::vector<Value>{bytes_value(jpeg), i % 2});
  }
  writer->finish();
  std::string content = read_text(path);
  content[content.find(third) + third.size() - 60] ^= 1;
  write_file(path, content);
  const std::shared_ptr<const LabelledPictures> source = open_labelled(path);
  REQUIRE(source->count() == 6);
  FeedOptions options;
  options.batch = 6;
  const auto feed = picture_feed_of(source, options, {"sequential"}, {});
  const FeedBatch& batch = feed->next();
  CHECK(std::vector<int64_t>(batch.samples.begin(), batch.samples.end()) ==
        std::vector<int64_t>{0, 1, 3, 3, 4, 5});
  REQUIRE(feed->bad_samples().size() == 1);
  CHECK(feed->bad_samples()[0].why.find("the checksum of its data") != std::string::npos);
}

TEST_CASE("what unpacks to a thousand times its size is refused") {
  const std::string bomb = deflated(std::string(200 << 20, '\0'), 31);
  CHECK(refusal([&] { open_bytes(bomb); }).find("unpacks to more than") != std::string::npos);
}

TEST_CASE("an index beside a TFRecord file must fit it") {
  const TempFolder folder;
  write_file(folder / "x.tfrecord", framed("hello") + framed("there"));
  for (const char* name : {"x.tfrecord.idx", "x.idx", "x.index"}) {
    write_file(folder / name, std::string_view("0 21\n21 21\n"));
    CHECK(open_dataset(folder / "x.tfrecord")->count() == 2);
    for (const char* wrong : {"0 21\n", "0 21\n20 21\n", "0 21\n21 22\n", "0 20\n20 22\n", "a b\n",
                              "0 21\n21 99999999999999999999\n", "0\n"}) {
      write_file(folder / name, std::string_view(wrong));
      CHECK_MESSAGE(refusal([&] { open_dataset(folder / "x.tfrecord"); }).find(name) != std::string::npos,
                    wrong);
    }
    std::filesystem::remove(folder / name);
  }
}

TEST_CASE("TFRecord files of TensorFlow's own are read") {
  const std::string data = real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data (set MILLRACE_DATA)");
    return;
  }
  const auto tiny = open_dataset(data + "/formats/tiny.tfrecord");
  CHECK(tiny->count() == 100);
  CHECK(tiny->columns().size() == 15);
  CHECK(std::get<int64_t>(tiny->read(0, tiny->column("cms_group_id"))) == 4);
  CHECK(std::get<int64_t>(tiny->read(0, tiny->column("campaign_id"))) == 24);
  CHECK(std::get<double>(tiny->read(0, tiny->column("clk"))) == 0);
  const auto criteo = open_dataset(data + "/formats/criteo_sample.tfrecord");
  CHECK(criteo->columns().size() == 40);
  CHECK(std::get<double>(criteo->read(0, criteo->column("I10"))) == doctest::Approx(1.0 / 3));
  for (const auto* dataset : {tiny.get(), criteo.get()})
    for (int64_t i = 0; i < dataset->count(); ++i) CHECK_NOTHROW(dataset->verify(i));
}

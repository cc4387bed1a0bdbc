#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <zlib.h>
#include <zstd.h>

#include <millrace/dataset.h>
#include <millrace/error.h>

#include "base/file.h"
#include "data/codecs/arrays/npy.h"
#include "data/codecs/arrays/tenbin.h"
#include "data/formats/formats.h"
#include "data/formats/open_dataset.h"
#include "data/formats/shard_index.h"
#include "data/formats/tar_values.h"
#include "data/io/compression.h"
#include "data/table/labels.h"
#include "support/labelled.h"
#include "support/pictures.h"
#include "support/refusal.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

std::string zipped(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string out = "\x93NUMPY";
  out += {version, 0, static_cast<char>(header.size()), 0};
  if (version > 1) out += {0, 0};
  return out + header + data;
}

std::span<const uint8_t> span(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
Bytes bytes(const std::string& text) { return Bytes(std::vector<uint8_t>(text.begin(), text.end())); }

template <typename T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

}  // namespace

TEST_CASE("WebDataset members become columns by their extension, missing ones have no value") {
  TempFolder folder;
  put_file(folder / "w.tar",
           make_tar({{"a/0.cls", " 7\n"},
                     {"a/0.txt", "hällo"},
                     {"a/0.json", "{\"x\": 1}"},
                     {"a/0.seg.NPY", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
                                         raw<float>({1.5F, -2}))},
                     {"a/", ""},
                     {"b/1.cls", "-3"},
                     {"b/1.txt.gz", zipped("packed")},
                     {"b/1.mp", "\x82\xa1x\x03\xa1y\t"},
                     {"b/1.wav", "RIFF"},
                     {"b/1.odd", "?"},
                     {"b/1.pyd", "cos\nsystem\n"}}));
  const auto set = open_dataset(folder / "w.tar");
  REQUIRE(set->count() == 2);
  CHECK(set->columns() == std::vector<Column>{{"__key__", ColumnKind::text},
                                              {"cls", ColumnKind::integer},
                                              {"txt", ColumnKind::text},
                                              {"json", ColumnKind::json},
                                              {"seg.npy", ColumnKind::array},
                                              {"txt.gz", ColumnKind::text},
                                              {"mp", ColumnKind::json},
                                              {"wav", ColumnKind::audio},
                                              {"odd", ColumnKind::bytes},
                                              {"pyd", ColumnKind::bytes}});
  const auto value = [&](int64_t i, const char* column) { return set->read(i, set->column(column)); };
  CHECK(std::get<std::string>(value(1, "__key__")) == "b/1");
  CHECK(std::get<int64_t>(value(0, "cls")) == 7);
  CHECK(std::get<int64_t>(value(1, "cls")) == -3);
  CHECK(std::get<std::string>(value(0, "txt")) == "hällo");
  CHECK(std::get<std::string>(value(1, "txt.gz")) == "packed");
  CHECK(std::get<std::string>(value(1, "mp")) == "{\"x\":3,\"y\":9}");
  CHECK(std::get<Array>(value(0, "seg.npy")).to_doubles() == std::vector<double>{1.5, -2});
  CHECK(std::holds_alternative<std::monostate>(value(1, "txt")));
  CHECK_FALSE(set->has(1, set->column("txt")));
  CHECK(set->has(0, set->column("txt")));
  const std::string pickle = refusal([&] { (void)value(1, "pyd"); });
  CHECK(pickle.find("b/1.pyd is a Python pickle") != std::string::npos);
}

TEST_CASE("a tar that is compressed as a whole is the same tar") {
  TempFolder folder;
  const std::string tar = make_tar(make_members({"ant", "bee"}, 3));
  put_file(folder / "a.tar", tar);
  put_file(folder / "a.tar.gz", zipped(tar));
  const auto plain = open_labelled(folder / "a.tar"), packed = open_labelled(folder / "a.tar.gz");
  REQUIRE(packed->count() == plain->count());
  CHECK(packed->classes() == plain->classes());
  CHECK(std::ranges::equal(packed->picture(5).bytes, plain->picture(5).bytes));
  put_file(folder / "cut.tar.gz", zipped(tar).substr(0, 300));
  CHECK(refusal([&] { (void)open_dataset(folder / "cut.tar.gz"); }).find("it ends early") !=
        std::string::npos);
}

TEST_CASE("packed members: several streams are joined, cut and foreign ones are refused, the limit holds") {
  std::string zstd(ZSTD_compressBound(5), '\0');
  zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), "hello", 5, 3));
  const auto text = [](const char* extension, const std::string& content) {
    return std::get<std::string>(decode_member(extension, "", bytes(content)));
  };
  CHECK(text("txt.zst", zstd) == "hello");
  CHECK(text("txt.zst", zstd + zstd) == "hellohello");
  CHECK(text("txt.gz", zipped("a") + zipped("b")) == "ab");
  CHECK(text(
            "txt.gz.zst", zstd.substr(0, 0) + [&] {
              const std::string inner = zipped("in");
              std::string outer(ZSTD_compressBound(inner.size()), '\0');
              outer.resize(ZSTD_compress(outer.data(), outer.size(), inner.data(), inner.size(), 3));
              return outer;
            }()) == "in");
  for (const char* extension : {"txt.gz", "txt.bz2", "txt.xz", "txt.zst"})
    for (const std::string& content :
         {std::string(), std::string("plain text, not packed"), zstd.substr(0, 6)})
      CHECK_FALSE(refusal([&] { (void)text(extension, content); }).empty());
  const std::string bomb = zipped(std::string(1 << 20, 'x'));
  CHECK(decompress(Compression::gzip, span(bomb), 1 << 20).size() == 1 << 20);
  CHECK(refusal([&] {
          (void)decompress(Compression::gzip, span(bomb), (1 << 20) - 1);
        }).find("unpacks to more than") != std::string::npos);
}

TEST_CASE("class folders with other files beside the pictures keep their labels") {
  TempFolder folder;
  const std::string jpeg = make_jpeg(8, 8, 3, 1);
  put_file(folder / "w.tar",
           make_tar({{"dog/1.jpg", jpeg}, {"dog/1.json", "{}"}, {"cat/2.ppm", "P6 1 1 255 abc"}}));
  const auto source = open_labelled(folder / "w.tar");
  CHECK(source->classes() == std::vector<std::string>{"cat", "dog"});
  CHECK(source->label(0) == 1);
  CHECK(source->name(1).ends_with("w.tar:cat/2.ppm"));  // the other column of pictures
  CHECK(source->picture(1).bytes.size() == 14);
}

TEST_CASE(".npy: number types, orders and versions; what is not read is named") {
  const auto parse = [](const std::string& file) { return parse_npy(span(file)); };
  const std::string data = raw<int16_t>({1, -2, 3, 4, 5, 6});
  for (const char version : {1, 2, 3}) {
    const Array a =
        parse(npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }\n", data, version));
    CHECK(a.type().str() == "i32[2, 3]");
    CHECK(a.to_doubles() == std::vector<double>{1, -2, 3, 4, 5, 6});
  }
  CHECK(parse(npy("{'shape': (2, 3), 'fortran_order': True, 'descr': '<i2'}", data)).to_doubles() ==
        std::vector<double>{1, 3, 5, -2, 4, 6});
  CHECK(parse(npy("{'descr': '<f8', 'fortran_order': False, 'shape': ()}", raw<double>({0.25}))).at(0) ==
        0.25);
  CHECK(parse(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", {0, 1, 7})).to_doubles() ==
        std::vector<double>{0, 1, 1});
  CHECK(parse(npy("{'descr': '<u8', 'fortran_order': False, 'shape': (0, 5)}", "")).count() == 0);
  const auto why = [&](const std::string& header, const std::string& content) {
    return refusal([&] { (void)parse(npy(header, content)); });
  };
  CHECK(why("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "x").find("Python objects") !=
        std::string::npos);
  CHECK(why("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "abcd").find("'>f4'") !=
        std::string::npos);
  CHECK(why("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "abcd")
            .find("several fields") != std::string::npos);
  CHECK(why("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "abcd").find("cut off") !=
        std::string::npos);
  CHECK(why("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999)}", "")
            .find("damaged") != std::string::npos);
  CHECK(why("{'descr': '<u8', 'fortran_order': False, 'shape': (1,)}", raw<uint64_t>({~0ULL})).find("2^63") !=
        std::string::npos);
}

TEST_CASE("arrays survive being written as .npy") {
  for (const DType dtype : {f32, f64, f16, i8, u8, i32, i64, boolean}) {
    const Array a = Array::of(dtype, {2, 2}, std::vector<double>{0, 1, 1, 0});
    const auto file = encode_npy(a);
    CHECK((file.size() - static_cast<size_t>(a.bytes())) % 64 == 0);
    CHECK(parse_npy(file).identical(a));
  }
}

TEST_CASE("cut and changed .npy, .npz, .ten and msgpack members are read or refused, never worse") {
  // A zip with one stored member "x.npy".
  const std::string array =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", raw<float>({1, 2}));
  const auto u16 = [](size_t v) { return raw<uint16_t>({static_cast<uint16_t>(v)}); };
  const auto u32 = [](size_t v) { return raw<uint32_t>({static_cast<uint32_t>(v)}); };
  std::string zip = "PK\3\4" + u16(20) + u16(0) + u16(0) + u32(0) + u32(0) + u32(array.size()) +
                    u32(array.size()) + u16(5) + u16(0) + "x.npy" + array;
  const size_t directory = zip.size();
  zip += "PK\1\2" + u16(20) + u16(20) + u16(0) + u16(0) + u32(0) + u32(0) + u32(array.size()) +
         u32(array.size()) + u16(5) + u16(0) + u16(0) + u16(0) + u16(0) + u32(0) + u32(0) + "x.npy";
  zip += "PK\5\6" + u16(0) + u16(0) + u16(1) + u16(1) + u32(zip.size() - directory) + u32(directory) + u16(0);
  CHECK(npz_names(span(zip)) == std::vector<std::string>{"x"});
  CHECK(parse_npz(span(zip), "x").to_doubles() == std::vector<double>{1, 2});

  const auto chunk = [](std::string content) {
    const std::string head = "~TenBin~" + raw<int64_t>({static_cast<int64_t>(content.size())});
    content.resize((content.size() + 63) / 64 * 64);
    return head + content;
  };
  const std::string ten = chunk(std::string("f4\0\0\0\0\0\0xs\0\0\0\0\0\0", 16) + raw<int64_t>({2, 1, 2})) +
                          chunk(raw<float>({3, 4}));
  const auto arrays = parse_tenbin(span(ten));
  REQUIRE(arrays.size() == 1);
  CHECK(arrays[0].first == "xs");
  CHECK(arrays[0].second.type().str() == "f32[1, 2]");

  const std::pair<const char*, std::string> members[] = {
      {"npy", array},
      {"npz", zip},
      {"ten", ten},
      {"mp", "\x83\xa1x\xdc\0\1\x03\xa1y\x91\xc7\2\1ab\xa1z\xca\1\2\3\4"}};
  for (const auto& [extension, whole] : members) {
    const std::string part = extension == std::string("npz") ? "x" : "";
    const auto attempt = [&](const std::string& content) {
      (void)refusal([&] { (void)decode_member(extension, part, bytes(content)); });
    };
    for (size_t size = 0; size < whole.size(); ++size) attempt(whole.substr(0, size));
    for (size_t at = 0; at < whole.size(); ++at)
      for (const int flip : {1, 0x80, 0xff}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ flip);
        attempt(changed);
      }
  }
  // Deep nesting is found before the reader that calls itself.
  CHECK(refusal([&] {
          (void)decode_member("mp", "", bytes(std::string(1'000'000, '\x91')));
        }).find("nested") != std::string::npos);
}

TEST_CASE("texts that are called as classes are classes in WebDataset, too") {
  TempFolder folder;
  const std::vector<Column> columns = {{"label", ColumnKind::text},
                                       {"text", ColumnKind::text},
                                       {"image", ColumnKind::text},
                                       {"class", ColumnKind::text}};
  const auto writer = formats().at("webdataset").create(folder / "x.tar", columns);
  writer->add(std::vector<Value>{std::string("ham"), std::string("hello"), std::string("a.png"),
                                 std::string("mail")});
  writer->finish();
  const auto set = open_dataset(folder / "x.tar");
  const auto value = [&](const char* column) {
    return std::get<std::string>(set->read(0, set->column(column)));
  };
  CHECK(value("label.txt") == "ham");
  CHECK(value("text") == "hello");
  CHECK(value("image.txt") == "a.png");
  CHECK(value("class.txt") == "mail");
  CHECK(set->columns()[*find_label(*set)].name == "label.txt");
}

TEST_CASE("what is written as WebDataset comes back with its values, kinds and keys") {
  TempFolder folder;
  const std::string jpeg = make_jpeg(8, 8, 3, 1);
  const std::vector<Column> columns = {{"label", ColumnKind::integer}, {"image", ColumnKind::picture},
                                       {"__key__", ColumnKind::text},  {"score", ColumnKind::real},
                                       {"caption", ColumnKind::text},  {"meta", ColumnKind::json},
                                       {"emb", ColumnKind::array},     {"blob", ColumnKind::bytes}};
  const Array array = Array::of(f32, {2, 2}, std::vector<double>{1, 2, 3, 4});
  const auto writer = formats().at("webdataset").create(folder / "out/x.tar", columns);
  writer->add(std::vector<Value>{int64_t{3}, bytes(jpeg), std::string("a/one"), 0.5, std::string("hé"),
                                 std::string("{}"), array, bytes("abc")});
  writer->add(std::vector<Value>{
      int64_t{-4}, Pixels{1, 2, 1, bytes("ab")}, std::string("a/two"), {}, {}, {}, {}, {}});
  CHECK_FALSE(std::filesystem::exists(folder / "out/x.tar"));
  writer->finish();
  const auto set = open_dataset(folder / "out/x.tar");
  REQUIRE(set->count() == 2);
  const auto value = [&](int64_t i, const char* column) { return set->read(i, set->column(column)); };
  CHECK(std::get<std::string>(value(1, "__key__")) == "a/two");
  CHECK(std::get<int64_t>(value(0, "cls")) == 3);
  CHECK(std::get<int64_t>(value(1, "cls")) == -4);
  CHECK(std::get<Bytes>(value(0, "jpg")).text() == jpeg);
  CHECK(std::get<Bytes>(value(1, "pgm")).text() == "P5\n2 1\n255\nab");
  CHECK(std::get<double>(value(0, "score.json")) == 0.5);  // as it was written
  CHECK(std::get<std::string>(value(0, "caption.txt")) == "hé");
  CHECK(std::get<std::string>(value(0, "meta.json")) == "{}");
  CHECK(std::get<Array>(value(0, "emb.npy")).identical(array));
  CHECK(std::get<Bytes>(value(0, "blob")).text() == "abc");
  CHECK_FALSE(set->has(1, set->column("blob")));
  // Members of a sample are in the order of their extensions.
  std::vector<std::string> names;
  const auto file = memory_file("x", Bytes(read_file(folder / "out/x.tar")));
  for_each_tar_member(*file, [&](const TarMember& member) {
    names.push_back(member.name);
    return true;
  });
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(names.size() == 9);

  const auto again = formats().at("webdataset").create(folder / "y.tar", columns);
  CHECK(refusal([&] {
          again->add(std::vector<Value>{int64_t{3}, {}, std::string("a.b"), {}, {}, {}, {}, {}});
        }).find("no dot") != std::string::npos);
  CHECK(refusal([&] {
          again->add(std::vector<Value>{int64_t{3}, bytes("what"), std::string("a"), {}, {}, {}, {}, {}});
        }).find("no known kind") != std::string::npos);
  CHECK(refusal([&] { (void)formats().at("webdataset").create(folder / "y.rec", columns); }).find("y.tar") !=
        std::string::npos);
}

TEST_CASE("DALI's index beside a tar is used where it fits, else it is said why not") {
  TempFolder folder;
  const std::string jpeg = make_jpeg(8, 8, 3, 1);
  put_file(folder / "w.tar", make_tar({{"a.cls", "7"}, {"a.jpg", jpeg}, {"b.cls", "8"}, {"b.jpg", jpeg}}));
  const auto scanned = open_dataset(folder / "w.tar");
  const auto bytes_of = [](const Dataset& set, int64_t i) {
    return std::string(std::get<Bytes>(set.read(i, set.column("jpg"))).text());
  };
  const std::string size = std::to_string(jpeg.size()), second = std::to_string(512 + 512 + 512),
                    third = std::to_string(2048 + (jpeg.size() + 511) / 512 * 512),
                    fourth = std::to_string(2048 + (jpeg.size() + 511) / 512 * 512 + 1024);
  const auto open_with = [&](const std::string& index) {
    put_file(folder / "w.idx", index);
    return open_dataset(folder / "w.tar");
  };
  const std::string good = "v1.2 2\ncls 512 1 a.cls jpg " + second + " " + size + " a.jpg\ncls " + third +
                           " 1 b.cls jpg " + fourth + " " + size + " b.jpg\n";
  const auto indexed = open_with(good);
  CHECK(indexed->notes() == scanned->notes());
  CHECK(indexed->columns() == scanned->columns());
  REQUIRE(indexed->count() == 2);
  for (int64_t i = 0; i < 2; ++i) {
    CHECK(indexed->name(i) == scanned->name(i));
    CHECK(std::get<int64_t>(indexed->read(i, indexed->column("cls"))) == 7 + i);
    CHECK(bytes_of(*indexed, i) == jpeg);
  }
  // Without names, samples are called by their numbers.
  const auto older = open_with("v1.1 2\ncls 512 1 jpg " + second + " " + size + "\ncls " + third + " 1 jpg " +
                               fourth + " " + size + "\n");
  CHECK(older->name(1).ends_with("w.tar:1.jpg"));
  CHECK(bytes_of(*older, 1) == jpeg);

  const auto note = [&](const std::string& index) {
    const auto set = open_with(index);
    CHECK(set->count() == 2);
    return set->notes().empty() ? "" : set->notes()[0];
  };
  CHECK(note("v1.2 1\ncls 512 1 a.cls\n").find("more members behind the last") != std::string::npos);
  CHECK(note("v1.2 2\ncls 512 1 a.cls\n").find("1 samples of 2") != std::string::npos);
  CHECK(note("v1.2 1\ncls 513 1 a.cls\n").find("no member of 1 bytes at 513") != std::string::npos);
  CHECK(note("v1.2 1\ncls 99999999999999 1 a.cls\n").find("does not fit") != std::string::npos);
  CHECK(note("v1.2 1\ncls 512 x a.cls\n").find("'x' is no number") != std::string::npos);
  CHECK(note("0\t0\n") == scanned->notes().at(0));  // another program's
}

TEST_CASE("a new shard begins at WebDataset's limits, and several shards are numbered") {
  TempFolder folder;
  const auto writer = formats().at("webdataset").create(folder / "x.tar", {{"n", ColumnKind::integer}});
  for (int64_t i = 0; i < 100'001; ++i) writer->add(std::vector<Value>{i});
  writer->finish();
  CHECK_FALSE(std::filesystem::exists(folder / "x.tar"));
  const auto set = open_dataset(folder / "x-*.tar");
  REQUIRE(set->count() == 100'001);
  CHECK(set->name(100'000).ends_with("x-000001.tar:00100000"));
  CHECK(std::get<int64_t>(set->read(100'000, set->column("n.cls"))) == 100'000);
}

TEST_CASE("WebDataset's own test files are read as they were written") {
  const std::string data = real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data (set MILLRACE_DATA)");
    return;
  }
  const auto mp = open_dataset(data + "/formats/wds-mpdata.tar");
  REQUIRE(mp->count() == 100);
  for (int64_t i = 0; i < 100; ++i) {
    const auto text = std::get<std::string>(mp->read(i, mp->column("mp")));
    CHECK(text == "{\"x\":" + std::to_string(i) + ",\"y\":" + std::to_string(i * i) + "}");
  }
  const auto ten = open_dataset(data + "/formats/wds-tendata.tar");
  REQUIRE(ten->count() == 100);
  CHECK(std::get<Array>(ten->read(99, ten->column("ten.ys"))).type().str() == "f64[28, 28]");
  const auto words = open_dataset(data + "/formats/wds-compressed.tar");
  REQUIRE(words->count() == 3);
  CHECK(std::get<std::string>(words->read(1, words->column("txt.gz"))) == "world\n");
  const auto texts = open_dataset(data + "/formats/wds-testgz.tar");
  REQUIRE(texts->count() == 1000);
  for (int64_t i = 0; i < 1000; ++i) CHECK(!std::get<std::string>(texts->read(i, 1)).empty());
}

TEST_CASE("the index of shards is found by their names, and keeps names of any bytes") {
  for (const char* shard :
       {"a/train-000003.tar", "a/train-3.tar.gz", "a/train-000003.tar.zst", "a/train-0.tar.xz"})
    CHECK(shard_index_path(shard) == "a/train.json");
  CHECK(shard_index_path("http://h/a/train-000003.tar#7") == "http://h/a/train.json");
  for (const char* other : {"a/train.tar", "a/train-.tar", "a/train-x3.tar", "a/train-3.gz", "a/b#-3.tar#1"})
    CHECK(shard_index_path(other).empty());
  const TempFolder folder;
  const std::vector<std::string> names = {"caf\xe8", "caf\xe9", "caf\xc3\xa9", "\\xe9", "dog"};
  write_shard_index(folder / "t.json", {names, {}});
  CHECK(read_shard_index(folder / "t.json")->classes == names);
  CHECK(
      parse_shard_index(R"({"format": "millrace-shards", "version": 1, "classes": ["a"], "shards": []})", "x")
          ->classes == std::vector<std::string>{"a"});
}

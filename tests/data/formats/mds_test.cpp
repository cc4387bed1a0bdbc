#include "data/formats/mds.h"

#include <cstring>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <thread>

#include <millrace/dataset.h>
#include <millrace/error.h>

#include "base/file.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/picture.h"
#include "data/formats/formats.h"
#include "data/formats/open_dataset.h"
#include "support/datasets.h"
#include "support/labelled.h"
#include "support/pictures.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

/// Sorted by name, as MDS has them.
const std::vector<Column> columns = {{"array", ColumnKind::array},    {"bytes", ColumnKind::bytes},
                                     {"jpeg", ColumnKind::picture},   {"json", ColumnKind::json},
                                     {"pixels", ColumnKind::picture}, {"real", ColumnKind::real},
                                     {"text", ColumnKind::text},      {"whole", ColumnKind::integer}};

Rows rows(int64_t count) {
  const std::vector<DType> types = {f32, f64, f16, i8, u8, i32, i64};
  Rows list;
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<uint64_t>(i);
    const Picture picture = make_picture(2 + static_cast<int>(i % 3), 5, i % 2 ? 1 : 3, number);
    // Axes of 1, 300 and 70,000 take one, two and four bytes.
    Array array(types[number % types.size()], {i % 5 == 0 ? 300 : i == 3 ? 70'000 : 2, 1});
    array.set(1, static_cast<double>(i));
    list.push_back({array, bytes_value(std::string(number * 7 % 3, '\0')),
                    bytes_value(make_jpeg(8, 8, 3, number)), R"({"i": )" + std::to_string(i) + "}",
                    Pixels{picture.height, picture.width, picture.channels, Bytes(picture.pixels)},
                    1.0 / static_cast<double>(i + 1), i == 2 ? std::string() : "ü" + std::to_string(i),
                    INT64_MIN + i});
  }
  return list;
}

/// A one-column data set with one shard around the given value.
std::unique_ptr<Dataset> one_value(const TempFolder& folder, const std::string& encoding,
                                   const std::string& value, const nlohmann::json& size) {
  std::string shard(12, '\0');
  const auto put = [&](size_t at, size_t number) {
    const auto word = static_cast<uint32_t>(number);
    std::memcpy(&shard[at], &word, 4);
  };
  put(0, 1);
  put(4, 12);
  if (size.is_null()) {
    shard.append(4, '\0');
    put(12, value.size());
  }
  shard += value;
  put(8, shard.size());
  write_file(folder / "shard.00000.mds", shard);
  const nlohmann::json index = {{"version", 2},
                                {"shards",
                                 {{{"column_names", {"x"}},
                                   {"column_encodings", {encoding}},
                                   {"column_sizes", {size}},
                                   {"compression", nullptr},
                                   {"format", "mds"},
                                   {"hashes", nlohmann::json::array()},
                                   {"samples", 1},
                                   {"version", 2},
                                   {"zip_data", nullptr},
                                   {"raw_data",
                                    {{"basename", "shard.00000.mds"},
                                     {"bytes", shard.size()},
                                     {"hashes", nlohmann::json::object()}}}}}}};
  write_file(folder / "index.json", index.dump());
  return open_dataset(folder.path());
}

template <typename T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

TEST_CASE("MDS comes back as it was written, in several shards, plain and compressed, and verifies") {
  const Rows list = rows(23);
  for (const bool zstd : {false, true}) {
    const TempFolder folder;
    MdsOptions options;
    options.zstd = zstd;
    options.shard_bytes = 20'000;
    options.hashes = {"md5", "sha1", "sha256", "sha3_256", "blake2b", "xxh32", "xxh64", "xxh128", "xxh3_64"};
    write_rows(*create_mds(folder / "set", columns, options), list);
    CHECK(std::filesystem::exists(folder / (zstd ? "set/shard.00002.mds.zstd" : "set/shard.00002.mds")));
    for (const char* path : {"set", "set/index.json"}) {
      const auto dataset = open_dataset(folder / path);
      CHECK(dataset->columns() == columns);
      CHECK(difference(read_rows(*dataset), list) == "");
      for (int64_t i = 0; i < dataset->count(); ++i) CHECK_NOTHROW(dataset->verify(i));
    }
    CHECK(refusal([&] { create_mds(folder / "set", columns); }).find("already") != std::string::npos);
  }
}

TEST_CASE("many threads read compressed MDS shards at once") {
  const Rows list = rows(23);
  const TempFolder folder;
  MdsOptions options;
  options.zstd = true;
  options.shard_bytes = 5'000;
  write_rows(*create_mds(folder / "set", columns, options), list);
  const auto dataset = open_dataset(folder / "set");
  std::vector<std::string> found(4);
  std::vector<std::thread> threads;
  for (std::string& each : found)
    threads.emplace_back([&] {
      for (int64_t i = 0; i < dataset->count(); ++i) dataset->verify(i);
      each = difference(read_rows(*dataset), list);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(found == std::vector<std::string>(4));
}

TEST_CASE("an MDS data set that is not finished leaves nothing") {
  const TempFolder folder;
  MdsOptions options;
  options.shard_bytes = 1000;
  {
    const auto writer = create_mds(folder / "set", columns, options);
    for (const auto& row : rows(5)) writer->add(row);
  }
  CHECK(!std::filesystem::exists(folder / "set"));
}

TEST_CASE("every encoding of a number and an array is decoded as Streaming writes it") {
  const TempFolder folder;
  const auto integer = [&](const char* encoding, const std::string& value, const nlohmann::json& size) {
    return std::get<int64_t>(one_value(folder, encoding, value, size)->read(0, 0));
  };
  const auto real = [&](const char* encoding, const std::string& value, const nlohmann::json& size) {
    return std::get<double>(one_value(folder, encoding, value, size)->read(0, 0));
  };
  CHECK(integer("int", raw<int64_t>(-5), 8) == -5);
  CHECK(integer("int8", raw<int8_t>(-5), 1) == -5);
  CHECK(integer("int16", raw<int16_t>(-500), 2) == -500);
  CHECK(integer("int32", raw<int32_t>(-70'000), 4) == -70'000);
  CHECK(integer("int64", raw<int64_t>(INT64_MIN), 8) == INT64_MIN);
  CHECK(integer("uint8", raw<uint8_t>(250), 1) == 250);
  CHECK(integer("uint16", raw<uint16_t>(65'000), 2) == 65'000);
  CHECK(integer("uint32", raw<uint32_t>(4'000'000'000), 4) == 4'000'000'000);
  CHECK(integer("uint64", raw<uint64_t>(INT64_MAX), 8) == INT64_MAX);
  CHECK(refusal([&] { integer("uint64", raw<uint64_t>(UINT64_MAX), 8); }).find("18446744073709551615") !=
        std::string::npos);
  CHECK(real("float16", raw<uint16_t>(0x3c00), 2) == 1);
  CHECK(real("float32", raw<float>(0.1F), 4) == double{0.1F});
  CHECK(real("float64", raw<double>(0.1), 8) == 0.1);
  CHECK(integer("str_int", "-12", nullptr) == -12);
  CHECK(real("str_float", "1e-3", nullptr) == 1e-3);
  CHECK(std::get<std::string>(one_value(folder, "str_decimal", "1.50", nullptr)->read(0, 0)) == "1.50");
  CHECK(refusal([&] { integer("str_int", "12x", nullptr); }).find("no number") != std::string::npos);

  const auto array = [&](const char* encoding, const std::string& value, const nlohmann::json& size) {
    return std::get<Array>(one_value(folder, encoding, value, size)->read(0, 0));
  };
  const std::string halves = raw<float>(0.5F) + raw<float>(1.5F);
  CHECK(array("ndarray:float32:2", halves, 8).identical(Array::of(f32, {2}, std::vector<double>{0.5, 1.5})));
  CHECK(array("ndarray:float32:1,2", halves, 8).shape() == Shape{1, 2});
  CHECK(array("ndarray:float32",
              "\x09" + raw<uint16_t>(1).substr(0, 0) + raw<uint16_t>(1) + raw<uint16_t>(2) + halves, nullptr)
            .shape() == Shape{1, 2});
  CHECK(array("ndarray", "\x22\x04\x02" + halves, nullptr).shape() == Shape{2});
  CHECK(array("ndarray", std::string("\x10\x04\x01", 3) + raw<uint16_t>(65'535), nullptr).int_at(0) ==
        65'535);
  CHECK(refusal([&] { array("ndarray", "\x22\x04\x03" + halves, nullptr); }).find("8 bytes") !=
        std::string::npos);
  CHECK(refusal([&] { array("ndarray", "\x22", nullptr); }).find("cut off") != std::string::npos);
  CHECK(refusal([&] { array("ndarray", "\x0a\x04\x01z", nullptr); }).find("element type") !=
        std::string::npos);
}

TEST_CASE("pickle and unknown encodings of MDS are refused by name") {
  const TempFolder folder;
  const auto open = [&](const char* encoding) {
    return refusal([&] { one_value(folder, encoding, "x", nullptr); });
  };
  CHECK(open("pkl").find("pickle runs whatever code") != std::string::npos);
  CHECK(open("list[jpeg]").find("'list[jpeg]' is not read here") != std::string::npos);
  CHECK(open("ndarray:complex64").find("complex64") != std::string::npos);
  CHECK(open("ndarray:float32:2,x").find("shape") != std::string::npos);
}

TEST_CASE("a damaged, missing or lying shard of MDS is named") {
  const TempFolder folder;
  MdsOptions options;
  options.zstd = true;
  write_rows(*create_mds(folder / "set", columns, options), rows(4));
  const auto shard = folder / "set/shard.00000.mds.zstd";
  const std::string content = read_text(shard), index = read_text(folder / "set/index.json");
  const auto attempt = [&] { return read_all([&] { return open_dataset(folder / "set"); }); };
  CHECK(attempt() == "");
  for (size_t at = 0; at < content.size(); at += 7) {
    std::string changed = content;
    changed[at] ^= 0x10;
    put_file(shard, changed);
    CHECK(attempt().find("shard.00000.mds") != std::string::npos);
    put_file(shard, content.substr(0, at));
    CHECK(attempt().find("shard.00000.mds") != std::string::npos);
  }
  put_file(shard, content);
  for (size_t at = 0; at < index.size(); ++at) {
    std::string changed = index;
    changed[at] ^= 0x04;
    put_file(folder / "set/index.json", changed);
    (void)attempt();
  }
  nlohmann::json outside = nlohmann::json::parse(index);
  outside["shards"][0]["zip_data"]["basename"] = "../shard.00000.mds.zstd";
  put_file(folder / "set/index.json", outside.dump());
  CHECK(attempt().find("'../shard") != std::string::npos);
  put_file(folder / "set/index.json", index);
  std::filesystem::remove(shard);
  CHECK(attempt().find("missing") != std::string::npos);
}

TEST_CASE("what MDS cannot hold is refused by name") {
  const TempFolder folder;
  const auto attempt = [&](ColumnKind kind, const Rows& list) {
    return refusal([&] { write_rows("mds", folder / "set", {{"x", kind}}, list); });
  };
  CHECK(attempt(ColumnKind::array, {{Array(f32, {})}}).find("not empty") != std::string::npos);
  CHECK(attempt(ColumnKind::array, {{Array(f32, {0})}}).find("not empty") != std::string::npos);
  CHECK(attempt(ColumnKind::array, {{Array(bf16, {1})}}).find("bf16") != std::string::npos);
  CHECK(attempt(ColumnKind::array, {{Array(boolean, {1})}}).find("bool") != std::string::npos);
  CHECK(attempt(ColumnKind::integer, {{std::monostate()}}).find("missing") != std::string::npos);
  CHECK(attempt(ColumnKind::picture, {{bytes_value("GIF89a")}}).find("JPEG and PNG") != std::string::npos);
  CHECK(attempt(ColumnKind::picture, {{bytes_value(make_jpeg(8, 8, 3, 1))}, {Pixels{1, 1, 1, Bytes({1})}}})
            .find("one encoding") != std::string::npos);
  CHECK(!std::filesystem::exists(folder / "set"));
}

TEST_CASE("bytes of MDS are sounds or pictures where the first sample's are") {
  const TempFolder folder;
  const auto writer = data::formats().at("mds").create(
      folder / "set", {{"a", ColumnKind::audio}, {"b", ColumnKind::bytes}, {"p", ColumnKind::bytes}});
  const auto bytes = [](const std::string& text) {
    return Bytes(std::vector<uint8_t>(text.begin(), text.end()));
  };
  const std::string wav("RIFF\x24\0\0\0WAVEfmt ", 16);  // as much as shows what it is
  for (int i = 0; i < 2; ++i) writer->add(std::vector<Value>{bytes(wav), bytes("abc"), bytes("")});
  writer->finish();
  const auto set = open_dataset(folder / "set");
  CHECK(set->columns()[set->column("a")].kind == ColumnKind::audio);
  CHECK(set->columns()[set->column("b")].kind == ColumnKind::bytes);
  CHECK(set->columns()[set->column("p")].kind == ColumnKind::bytes);
}

TEST_CASE("MDS folders of Streaming's own are read, and their pictures are a labelled source") {
  const std::string data = real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data (set MILLRACE_DATA)");
    return;
  }
  const std::vector<Truth> truth = cifar20(data);
  for (const std::string name : {"cifar20-mds", "cifar20-mds-zstd"}) {
    const auto dataset = open_dataset(data + "/formats/" + name);
    REQUIRE(dataset->count() == 20);
    const auto value = [&](int64_t i, const char* column) {
      return dataset->read(i, dataset->column(column));
    };
    for (int64_t i = 0; i < 20; ++i) {
      const Truth& wanted = truth[static_cast<size_t>(i)];
      CHECK_NOTHROW(dataset->verify(i));
      CHECK(std::get<int64_t>(value(i, "label")) == wanted.label);
      CHECK(std::get<double>(value(i, "score")) == wanted.score);
      CHECK(std::get<std::string>(value(i, "name")) == "s" + std::to_string(i));
      CHECK(nlohmann::json::parse(std::get<std::string>(value(i, "meta")))["i"] == i);
      CHECK(sha256(value(i, "raw")) == wanted.sha256);
      const auto array = std::get<Array>(value(i, "array"));
      CHECK(array.type() == Type{f32, {2, 3}});
      for (int64_t k = 0; k < 6; ++k) CHECK(array.at(k) == static_cast<double>(k + i));
      const auto free = std::get<Array>(value(i, "free"));
      for (int64_t k = 0; k < free.count(); ++k) CHECK(free.int_at(k) == k);
      Picture picture;
      CHECK(decode_picture(std::get<Bytes>(value(i, "image")).view(), picture).empty());
    }
    const auto source = open_labelled(data + "/formats/" + name);
    CHECK(source->count() == 20);
    CHECK(source->label(11) == truth[11].label);
  }
}

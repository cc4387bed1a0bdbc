#include <cstring>
#include <doctest/doctest.h>

#include <millrace/dataset.h>
#include <millrace/error.h>
#include <millrace/file.h>

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

/// All kinds, arrays of every type, in an order that needs padding between fields.
std::vector<Column> columns() {
  std::vector<Column> list = {{"pixels", ColumnKind::picture}, {"whole", ColumnKind::integer},
                              {"jpeg", ColumnKind::picture},   {"bytes", ColumnKind::bytes},
                              {"real", ColumnKind::real},      {"json", ColumnKind::json}};
  for (const char* type : {"f32", "f64", "f16", "i8", "u8", "i32", "i64", "bool"})
    list.push_back({type, ColumnKind::array});
  return list;
}

Rows rows(int64_t count, size_t bytes_each = 5) {
  Rows list;
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<uint64_t>(i);
    const Picture picture = make_picture(3 + static_cast<int>(i % 3), 5, 3, number);
    list.push_back({Pixels{picture.height, picture.width, 3, Bytes(picture.pixels)}, INT64_MIN + i,
                    bytes_value(make_jpeg(9, 7, 3, number)),
                    bytes_value(std::string((number % 3) * bytes_each, '\0')),
                    1.0 / static_cast<double>(i + 1), i == 1 ? std::string("null") : R"({"a": [1, "ü"]})"});
    for (const DType type : {f32, f64, f16, i8, u8, i32, i64, boolean}) {
      Array array(type, {2, 1, 3});
      for (int64_t k = 0; k < 6; ++k)
        array.set(k, type == boolean ? static_cast<double>((i + k) % 2) : static_cast<double>((i + k) % 100));
      list.back().push_back(array);
    }
  }
  return list;
}

std::vector<uint8_t> written(const Rows& list) {
  const TempFolder folder;
  write_rows("beton", folder / "x.beton", columns(), list);
  return read_file(folder / "x.beton");
}

std::unique_ptr<Dataset> open_bytes(std::vector<uint8_t> content) {
  return formats().at("beton").open("x.beton", {memory_file("x.beton", Bytes(std::move(content)))}, {});
}

uint64_t u64_at(const std::vector<uint8_t>& bytes, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, &bytes.at(at), sizeof value);
  return value;
}

}  // namespace

TEST_CASE("FFCV's format comes back as it was written, with every field type") {
  const Rows list = rows(11);
  const TempFolder folder;
  write_rows("beton", folder / "x.beton", columns(), list);
  const auto dataset = open_dataset(folder / "x.beton");
  CHECK(dataset->columns() == columns());
  CHECK(difference(read_rows(*dataset), list) == "");
}

TEST_CASE("FFCV files read together are one") {
  const TempFolder folder;
  write_rows("beton", folder / "a.beton", columns(), rows(2));
  write_rows("beton", folder / "b.beton", columns(), rows(3));
  const auto dataset = open_dataset(folder / "{a,b}.beton");
  REQUIRE(dataset->count() == 5);
  CHECK(std::get<int64_t>(dataset->read(4, 1)) == INT64_MIN + 2);
  write_rows("beton", folder / "b.beton", {{"whole", ColumnKind::integer}}, {{int64_t{1}}});
  CHECK(refusal([&] { open_dataset(folder / "{a,b}.beton"); }).find("other fields") != std::string::npos);
}

TEST_CASE("a sample of FFCV's never straddles two pages, and every place is its own") {
  const TempFolder folder;
  const std::vector<Column> two = {{"a", ColumnKind::bytes}, {"b", ColumnKind::bytes}};
  Rows list;
  // One sample is larger than the usual page.
  for (const size_t size : {3u << 20, 4u << 20, 5u << 20, 0u, 0u, 9u << 20, 1u})
    list.push_back({bytes_value(std::string(size, 'a')), bytes_value(std::string(size / 8, 'b'))});
  write_rows("beton", folder / "x.beton", two, list);
  CHECK(difference(read_rows(*open_dataset(folder / "x.beton")), list) == "");
  const std::vector<uint8_t> content = read_file(folder / "x.beton");
  uint32_t page = 0;
  std::memcpy(&page, &content[4], 4);
  CHECK(page == 16u << 20);
  std::vector<uint64_t> places, page_of(list.size(), 0);
  for (uint64_t at = u64_at(content, 16); at < content.size(); at += 24) {
    const uint64_t sample = u64_at(content, at), place = u64_at(content, at + 8),
                   size = u64_at(content, at + 16);
    places.push_back(place);
    CHECK(place / page == (place + std::max<uint64_t>(size, 1) - 1) / page);
    if (page_of[sample] > 0) CHECK(page_of[sample] == place / page);
    page_of[sample] = place / page;
    CHECK(place >= page);
  }
  CHECK(places.size() == 14);
  std::sort(places.begin(), places.end());
  CHECK(std::adjacent_find(places.begin(), places.end()) == places.end());
}

TEST_CASE("a cut or changed FFCV file is refused or read, never worse") {
  const std::vector<uint8_t> whole = written(rows(3));
  const uint64_t table = u64_at(whole, 16);
  const size_t front = 24 + columns().size() * 1041 + 3 * 200;
  const auto attempt = [](std::vector<uint8_t> content) {
    (void)read_all([&] { return open_bytes(std::move(content)); });
  };
  for (size_t at = 0; at < front; at += at < 24 ? 1 : 37)
    for (const int bit : {0, 6, 7}) {
      std::vector<uint8_t> changed = whole;
      changed[at] ^= static_cast<uint8_t>(1 << bit);
      attempt(std::move(changed));
    }
  for (size_t at = table; at < whole.size(); at += 5) {
    std::vector<uint8_t> changed = whole;
    changed[at] ^= 0x91;
    attempt(std::move(changed));
    attempt({whole.begin(), whole.begin() + static_cast<int64_t>(at)});
  }
  for (size_t size = 0; size < front; size += 997)
    attempt({whole.begin(), whole.begin() + static_cast<int64_t>(size)});
  std::vector<uint8_t> custom = whole;
  custom[24 + 1041] = 255;
  CHECK(refusal([&] { open_bytes(custom); }).find("'whole' is of a type of its own") != std::string::npos);
  custom = whole;
  custom[0] = 1;
  CHECK(refusal([&] { open_bytes(custom); }).find("version 1") != std::string::npos);
}

TEST_CASE("a picture of FFCV's with a size beyond the file, and beyond 32 bits, is refused") {
  std::vector<uint8_t> content = written(rows(1));
  const size_t picture = 24 + columns().size() * 1041;
  std::memset(&content[picture + 1], 0xff, 4);
  const auto dataset = open_bytes(content);
  CHECK(refusal([&] { dataset->read(0, 0); }).find("truncated") != std::string::npos);
}

TEST_CASE("what FFCV's format cannot hold is refused by name") {
  const TempFolder folder;
  const auto attempt = [&](const Column& column, const Rows& list) {
    const std::string message = refusal([&] { write_rows("beton", folder / "x.beton", {column}, list); });
    CHECK(!std::filesystem::exists(folder / "x.beton"));
    return message;
  };
  CHECK(attempt({"a name of seventeen", ColumnKind::bytes}, {}).find("16 ASCII") != std::string::npos);
  CHECK(attempt({"x", ColumnKind::bytes}, {{std::monostate()}}).find("missing") != std::string::npos);
  CHECK(attempt({"x", ColumnKind::array}, {{Array(f32, {})}}).find("axes") != std::string::npos);
  CHECK(attempt({"x", ColumnKind::array}, {{Array(f32, {2, 0})}}).find("empty") != std::string::npos);
  CHECK(attempt({"x", ColumnKind::array}, {{Array(bf16, {2})}}).find("bf16") != std::string::npos);
  CHECK(attempt({"x", ColumnKind::array}, {{Array(f32, {2})}, {Array(f32, {3})}}).find("sample 1") !=
        std::string::npos);
  CHECK(attempt({"x", ColumnKind::picture}, {{bytes_value("\x89PNG")}}).find("no JPEG") != std::string::npos);
  CHECK(attempt({"x", ColumnKind::picture}, {{Pixels{1, 1, 1, Bytes({1})}}}).find("grey") !=
        std::string::npos);
  CHECK(attempt({"x", ColumnKind::bytes}, {}).find("no samples") != std::string::npos);
}

TEST_CASE("FFCV's own files are read, and their pictures are a labelled source") {
  const std::string data = real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data (set MILLRACE_DATA)");
    return;
  }
  const std::vector<Truth> truth = cifar20(data);
  for (const std::string name : {"raw", "jpg"}) {
    const auto dataset = open_dataset(data + "/formats/cifar20-" + name + ".beton");
    REQUIRE(dataset->count() == 20);
    const auto value = [&](int64_t i, const char* column) {
      return dataset->read(i, dataset->column(column));
    };
    for (int64_t i = 0; i < 20; ++i) {
      const Truth& wanted = truth[static_cast<size_t>(i)];
      CHECK(std::get<int64_t>(value(i, "label")) == wanted.label);
      CHECK(std::get<double>(value(i, "score")) == wanted.score);
      CHECK(sha256(value(i, "blob")) == wanted.sha256);
      const auto array = std::get<Array>(value(i, "array"));
      CHECK(array.shape() == Shape{2, 3});
      for (int64_t k = 0; k < 6; ++k) CHECK(array.at(k) == static_cast<double>(k + i));
      Picture original, stored;
      REQUIRE(decode_picture(std::get<Bytes>(value(i, "blob")).view(), original).empty());
      if (name == "raw") {
        const auto pixels = std::get<Pixels>(value(i, "image"));
        CHECK(std::vector<uint8_t>(pixels.bytes.view().begin(), pixels.bytes.view().end()) ==
              original.pixels);
      } else {
        REQUIRE(decode_picture(std::get<Bytes>(value(i, "image")).view(), stored).empty());
        double apart = 0;
        for (size_t p = 0; p < original.pixels.size(); ++p)
          apart += std::abs(original.pixels[p] - stored.pixels[p]);
        CHECK(apart / static_cast<double>(original.pixels.size()) < 8);  // compressed a second time
      }
    }
    const auto source = open_labelled(data + "/formats/cifar20-" + name + ".beton");
    CHECK(source->label(19) == truth[19].label);
    Picture picture;
    CHECK(decode_picture(source->picture(7), picture).empty());
    CHECK(picture.size_text() == "32x32 colour");
  }
}

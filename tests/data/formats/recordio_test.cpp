#include <cstring>
#include <doctest/doctest.h>

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

const std::vector<Column> columns = {
    {"label", ColumnKind::array}, {"id", ColumnKind::integer}, {"data", ColumnKind::bytes}};

/// Payloads that contain the magic number: at places where the writer splits, and at others.
std::vector<std::vector<uint8_t>> payloads() {
  const std::vector<uint8_t> magic = {0x0a, 0x23, 0xd7, 0xce};
  std::vector<std::vector<uint8_t>> list = {{}, {1}, {1, 2, 3}, {1, 2, 3, 4, 5}};
  for (const size_t before : {0, 1, 3, 4, 8})
    for (const size_t after : {0, 1, 4})
      for (const int times : {1, 2, 3}) {
        std::vector<uint8_t> payload(before, 7);
        for (int i = 0; i < times; ++i) payload.insert(payload.end(), magic.begin(), magic.end());
        payload.insert(payload.end(), after, 9);
        list.push_back(payload);
      }
  return list;
}

void write(const std::string& path) {
  const auto writer = formats().at("recordio").create(path, columns);
  int64_t id = 0;
  for (const auto& payload : payloads()) {
    // The header is 24 bytes and the labels 4 each: with one more or less, the payload's places move.
    const Array labels = Array::full(f32, {1 + id % 2}, static_cast<double>(id));
    writer->add(std::vector<Value>{labels, id, Bytes(payload)});
    ++id;
  }
  writer->finish();
}

}  // namespace

TEST_CASE("RecordIO comes back as it was written, with the magic number in the content") {
  const TempFolder folder;
  const std::string path = folder / "x.rec";
  write(path);
  const auto dataset = open_dataset(path);
  const auto wanted = payloads();
  REQUIRE(dataset->count() == static_cast<int64_t>(wanted.size()));
  CHECK(dataset->columns() == std::vector<Column>{{"label", ColumnKind::array},
                                                  {"id", ColumnKind::integer},
                                                  {"id2", ColumnKind::integer},
                                                  {"data", ColumnKind::bytes}});
  for (int64_t i = 0; i < dataset->count(); ++i) {
    const auto bytes = std::get<Bytes>(dataset->read(i, dataset->column("data")));
    CHECK(std::vector<uint8_t>(bytes.view().begin(), bytes.view().end()) == wanted[static_cast<size_t>(i)]);
    CHECK(std::get<int64_t>(dataset->read(i, dataset->column("id"))) == i);
    const auto labels = std::get<Array>(dataset->read(i, dataset->column("label")));
    CHECK(labels.count() == 1 + i % 2);
    CHECK(labels.at(0) == static_cast<double>(i));
  }
  // The index beside it says where records begin.
  const std::string index = read_text(folder / "x.idx");
  CHECK(index.starts_with("0\t0\n1\t"));
}

TEST_CASE("a cut or changed RecordIO file is refused or read, never worse") {
  const TempFolder folder;
  write(folder / "x.rec");
  const std::vector<uint8_t> whole = read_file(folder / "x.rec");
  const auto read_all = [&](std::span<const uint8_t> bytes) {
    write_file(folder / "y.rec", bytes);
    try {
      const auto dataset = open_dataset(folder / "y.rec");
      for (int64_t i = 0; i < dataset->count(); ++i)
        for (size_t c = 0; c < dataset->columns().size(); ++c) (void)dataset->read(i, c);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  for (size_t size = 0; size < whole.size(); size += 13)
    if (const std::string error = read_all({whole.data(), size}); !error.empty())
      CHECK(error.find("y.rec") != std::string::npos);
  for (size_t at = 0; at < whole.size(); at += 5) {
    std::vector<uint8_t> changed = whole;
    changed[at] ^= 0x41;
    (void)read_all(changed);
  }
}

TEST_CASE("columns that RecordIO cannot hold are refused by name") {
  const TempFolder folder;
  try {
    (void)formats()
        .at("recordio")
        .create(folder / "x.rec", {{"label", ColumnKind::integer}, {"caption", ColumnKind::text}});
    FAIL("not refused");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find("'caption' (text)") != std::string::npos);
  }
}

TEST_CASE("a RecordIO file of MXNet's own is read, and its pictures are a labelled source") {
  const std::string data = real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data (set MILLRACE_DATA)");
    return;
  }
  const std::shared_ptr<const Dataset> dataset = open_dataset(data + "/formats/cifar20.rec");
  REQUIRE(dataset->count() == 20);
  const std::vector<Truth> truth = cifar20(data);
  for (int64_t i = 0; i < 20; ++i) {
    const Truth& wanted = truth[static_cast<size_t>(i)];
    const double label = static_cast<double>(wanted.label);
    const auto labels = std::get<Array>(dataset->read(i, dataset->column("label")));
    CHECK(labels.to_doubles() ==
          (i % 2 ? std::vector<double>{label} : std::vector<double>{label, wanted.score}));
    const Value content = dataset->read(i, dataset->column("image"));
    // Record 3 is no picture: its content is split at the magic number.
    if (i == 3)
      CHECK(std::get<Bytes>(content).size() == 20);
    else
      CHECK(sha256(content) == wanted.sha256);
  }
  const auto source = labelled(dataset);
  CHECK(source->label(19) == std::get<Array>(dataset->read(19, 0)).at(0));
  Picture picture;
  CHECK(decode_picture(source->picture(0), picture).empty());
  CHECK(picture.size_text() == "32x32 colour");
  CHECK(open_labelled(data + "/formats/cifar20.rec")->count() == 20);
}

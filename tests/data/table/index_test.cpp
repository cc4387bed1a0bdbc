#include "data/table/index.h"

#include <doctest/doctest.h>
#include <filesystem>

#include <millrace/error.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "data/formats/formats.h"
#include "data/formats/open_dataset.h"
#include "data/formats/shard_index.h"
#include "data/table/query.h"
#include "data/tools/verify.h"
#include "support/datasets.h"
#include "support/labelled.h"
#include "support/pictures.h"
#include "support/refusal.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

using Samples = std::vector<int64_t>;

/// Six samples: labels 0 to 5, pictures 8 to 13 wide, texts in the first four, a PAX name in none.
std::string write_set(const TempFolder& folder) {
  Members members;
  for (int i = 0; i < 6; ++i) {
    const std::string key = (i < 3 ? "train/" : "test/") + std::to_string(i);
    members.emplace_back(key + ".cls", std::to_string(i));
    members.emplace_back(key + ".jpg", make_jpeg(8, 8 + i, 3, i));
    if (i < 4) members.emplace_back(key + ".txt", i % 2 ? "odd" : "even");
  }
  put_file(folder / "w-0.tar", make_tar(members));
  write_shard_index(folder / "w.json", {{"a", "b", "c", "d", "e", "f"}, {}});  // nothing to say about classes
  return folder / "w-0.tar";
}

void check_same(const Dataset& a, const Dataset& b) {
  REQUIRE(a.count() == b.count());
  REQUIRE(a.columns() == b.columns());
  for (int64_t i = 0; i < a.count(); ++i) {
    CHECK(a.name(i) == b.name(i));
    for (size_t c = 0; c < a.columns().size(); ++c) {
      CHECK(a.has(i, c) == b.has(i, c));
      CHECK(same(a.read(i, c), b.read(i, c)));
    }
  }
}

std::string refusal(const std::string& condition, const Dataset& dataset) {
  return testing::refusal([&] { (void)matching(dataset, Query::parse(condition)); });
}

}  // namespace

TEST_CASE("a tar by its index is the tar that was gone through") {
  TempFolder folder;
  const std::string path = write_set(folder);
  const auto scanned = open_dataset(path);
  const auto results = write_indices(*scanned);
  REQUIRE(results.size() == 1);
  CHECK(results[0].samples == 6);
  const auto indexed = open_dataset(path);
  CHECK(indexed->notes().empty());
  CHECK(typeid(*indexed) != typeid(*scanned));
  check_same(*scanned, *indexed);

  std::string why;
  const auto index = open_index(*indexed->files()[0], why);
  REQUIRE(index);
  CHECK(index->key(4) == "test/4");
  CHECK(std::get<int64_t>(index->value(*index->small("width"), 5)) == 13);
  CHECK(std::get<int64_t>(index->value(*index->small("height"), 5)) == 8);
  CHECK(std::get<std::string>(index->value(*index->small("split"), 3)) == "test");
  CHECK(std::holds_alternative<std::monostate>(index->value(*index->small("txt"), 5)));
  const auto file = read_file(path);
  CHECK(index->checksum(2) == crc32c(file.data() + index->offset(2), index->size(2)));
  CHECK(index->offset(0) == 0);
  CHECK(index->offset(1) == index->size(0));
}

TEST_CASE("a plain tar and RecordIO open by their indices too") {
  TempFolder folder;
  put_file(folder / "p.tar", make_tar(make_members({"dog", "cat"}, 3)));
  const auto writer =
      formats()
          .at("recordio")
          .create(folder / "r.rec", {{"label", ColumnKind::real}, {"data", ColumnKind::bytes}});
  for (int i = 0; i < 5; ++i)
    writer->add(std::vector<Value>{
        0.5 * i, Bytes(std::vector<uint8_t>{0x0a, 0x23, 0xd7, 0xce, static_cast<uint8_t>(i)})});
  writer->finish();
  for (const char* name : {"p.tar", "r.rec"}) {
    const auto before = open_dataset(folder / name);
    write_indices(*before);
    const auto after = open_dataset(folder / name);
    check_same(*before, *after);
    CHECK(verify(*after).with_checksum == after->count());
  }
  const auto source = open_labelled(folder / "p.tar");
  CHECK(source->classes() == std::vector<std::string>{"cat", "dog"});
  CHECK(source->label(0) == 1);
  // An empty class is an error as it is without the index, but the samples can be looked at.
  Members members = make_members({"dog", "cat"}, 3);
  members.emplace_back("owl/", "");
  put_file(folder / "hole.tar", make_tar(members));
  write_indices(*open_dataset(folder / "hole.tar"));
  CHECK(open_dataset(folder / "hole.tar")->count() == 6);
  CHECK_THROWS_WITH_AS(open_labelled(folder / "hole.tar"), doctest::Contains("class owl: no pictures"),
                       InputError);
}

TEST_CASE("real tars by their indices") {
  const std::string data = real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data (set MILLRACE_DATA)");
    return;
  }
  for (const char* name :
       {"formats/wds-tendata.tar", "formats/wds-testgz.tar", "formats/wds-compressed.tar"}) {
    TempFolder folder;
    std::filesystem::copy_file(data + "/" + name, folder / "x.tar");
    const auto before = open_dataset(folder / "x.tar");
    const std::vector<std::string> noted = before->notes();
    write_indices(*before);
    const auto after = open_dataset(folder / "x.tar");
    CHECK(after->notes() == noted);
    check_same(*before, *after);
  }
}

TEST_CASE(
    "an index of another file, a damaged one and one of another version are not used, and it is said why") {
  TempFolder folder;
  const std::string path = write_set(folder), sidecar = path + ".mrx";
  write_indices(*open_dataset(path));
  const std::vector<uint8_t> good = read_file(sidecar);
  const auto note = [&] {
    const auto dataset = open_dataset(path);
    CHECK(dataset->count() == 6);
    return dataset->notes().empty() ? "" : dataset->notes()[0];
  };
  CHECK(note() == "");
  for (size_t at = 0; at < good.size(); at += 7) {
    std::vector<uint8_t> changed = good;
    changed[at] ^= 0x20;
    write_file(sidecar, changed);
    const std::string said = note();
    CHECK_MESSAGE((said.find("damaged") != std::string::npos || said.find("version") != std::string::npos),
                  at);
  }
  for (size_t size = 0; size < good.size(); size += 50) {
    write_file(sidecar, std::span(good).first(size));
    CHECK(note().find("damaged") != std::string::npos);
  }
  write_file(sidecar, good);
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(2));
  CHECK(note().find("has changed since this index was made") != std::string::npos);
  CHECK(open_labelled(path)->notes().size() == 1);
}

TEST_CASE("changed bytes of a sample are found by its checksum, and by name") {
  TempFolder folder;
  const std::string path = write_set(folder);
  write_indices(*open_dataset(path));
  CHECK(verify(*open_dataset(path)).bad.empty());
  std::vector<uint8_t> bytes = read_file(path);
  bytes[open_dataset(path)->extent(3)->offset + 2048 + 100] ^= 1;
  write_file(path, bytes);
  const VerifyResult result = verify(*open_dataset(path));
  REQUIRE(result.bad.size() == 1);
  CHECK(result.bad[0].index == 3);
  CHECK(result.bad[0].name.find("test/3") != std::string::npos);
  CHECK(result.bad[0].why.find("its bytes have changed") != std::string::npos);
}

TEST_CASE("conditions choose the same samples with an index and without") {
  TempFolder folder;
  const std::string path = write_set(folder);
  const std::vector<std::pair<const char*, Samples>> cases = {
      {"label in (3, 5) and width > 8", {3, 5}},
      {"cls = 3 or cls == 5", {3, 5}},
      {"not (label < 2) and label <> 4", {2, 3, 5}},
      {"NOT label < 2 AND label != 4", {2, 3, 5}},
      {"label not in (0, 1, 2.0)", {3, 4, 5}},
      {"txt = 'odd'", {1, 3}},
      {"txt in (\"odd\", 'even') and label >= 1", {1, 2, 3}},
      {"not txt = 'odd'", {0, 2}},  // a missing text is neither
      {"txt < 'f' or label = 5", {0, 2, 5}},
      {"width = height", {0}},
      {"width > 10.5", {3, 4, 5}},
      {"split = 'train'", {0, 1, 2}},
      {"__key__ = 'test/4'", {4}},
      {"`label` = -1 or 2 >= label and label > +0", {1, 2}},
      {"label = 1e0", {1}},
  };
  for (const bool with_index : {false, true}) {
    const auto dataset = open_dataset(path);
    for (const auto& [condition, wanted] : cases)
      CHECK_MESSAGE(matching(*dataset, Query::parse(condition)) == wanted, condition);
    write_indices(*dataset);
    (void)with_index;
  }
  const std::shared_ptr<const Dataset> chosen = where(open_dataset(path), "label in (3, 5)");
  CHECK(chosen->count() == 2);
  CHECK(std::get<int64_t>(chosen->read(1, chosen->column("cls"))) == 5);
  const auto source = open_labelled(path, "label in (3, 5)");
  CHECK(source->count() == 2);
  CHECK(source->label(1) == 5);
  CHECK(source->classes().size() == 6);
  CHECK_THROWS_WITH_AS(open_labelled(path, "label = 77"), doctest::Contains("no sample matches"), InputError);
}

TEST_CASE("mistakes in conditions are shown at their place") {
  TempFolder folder;
  const auto dataset = open_dataset(write_set(folder));
  const auto shows = [&](const std::string& condition, const std::string& message,
                         const std::string& marked) {
    const std::string error = refusal(condition, *dataset);
    CHECK_MESSAGE(error.find(message) != std::string::npos, error);
    CHECK_MESSAGE(error.ends_with("\n  " + condition + "\n  " + marked), error);
  };
  shows("lable = 3", "did you mean 'cls'", "^");
  shows("width > 3 and heigth < 4", "did you mean 'height'", "              ^");
  shows("jpg = 3", "'jpg' holds picture values", "^");
  shows("label = 'cat'", "there is no class 'cat'; there are: a, b", "        ^");
  shows("width = 'cat'", "'width' holds numbers; this is a text", "        ^");
  shows("txt in ('a', 3)", "'txt' holds texts; write the text in quotes", "             ^");
  shows("label in (3, 5", "a , or ) is missing", "              ^");
  shows("(label = 3", "a ) is missing", "          ^");
  shows("label = ", "a column or a value is missing", "        ^");
  shows("label 3", "a comparison is missing", "      ^");
  shows("label = 3 width = 4", "one thing too many", "          ^");
  shows("txt = 'odd", "has no end", "      ^");
  shows("label = 3 and or", "missing before \"or\"", "              ^");
  shows("3 = 4", "one side must be a column", "^");
  shows("label = 3x", "ends in a letter", "         ^");
  CHECK(refusal(std::string(5000, '('), *dataset).find("nested too deeply") != std::string::npos);
  CHECK(refusal("", *dataset).find("is missing here") != std::string::npos);
}

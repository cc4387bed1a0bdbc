#include "data/tools/pack/pack.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <millrace/error.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/picture.h"
#include "data/formats/shard_index.h"
#include "support/labelled.h"
#include "support/packed.h"
#include "support/pictures.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

void check_equal(const LabelledPictures& a, const LabelledPictures& b) {
  REQUIRE(a.count() == b.count());
  CHECK(a.classes() == b.classes());
  for (int64_t i = 0; i < a.count(); ++i) {
    CHECK(a.label(i) == b.label(i));
    Picture left, right;
    CHECK(decode_picture(a.picture(i), left) == decode_picture(b.picture(i), right));
    CHECK(left == right);
  }
}

}  // namespace

TEST_CASE("packed shards read back to the same samples, labels and class names") {
  TempFolder folder;
  write_members(folder / "set", make_members({"ant", "bee", "cat"}, 7));
  const auto source = open_labelled(folder / "set");
  PackOptions options;
  options.shards.samples = 6;
  int64_t last = 0;
  options.progress = [&](int64_t done, int64_t total) { last = total == 21 ? done : -1; };
  const PackResult result = pack(*source, folder / "out", "train", options);
  CHECK(last == 21);
  CHECK(result.samples == 21);
  CHECK(result.shards == 4);
  CHECK(result.pattern == (folder / "out/train-{000000..000003}.tar").string());
  check_equal(*source, *open_labelled(result.pattern));
  check_equal(*source, *open_labelled(folder / "out"));

  const auto index = read_shard_index(folder / "out/train.json");
  REQUIRE(index);
  CHECK(index->shards.size() == 4);
  uint64_t bytes = 0;
  for (const ShardEntry& shard : index->shards) {
    const auto content = read_file(folder / "out" / shard.name);
    CHECK(shard.bytes == content.size());
    CHECK(shard.crc32c == crc32c(content.data(), content.size()));
    bytes += shard.bytes;
  }
  CHECK(bytes == result.bytes);
  struct stat status {};
  CHECK(stat((folder / "out/train-000000.tar").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0444);

  // One shard of the middle keeps the numbers of all classes.
  const auto part = open_labelled(folder / "out/train-000001.tar");
  CHECK(part->count() == 6);
  CHECK(part->classes() == source->classes());
  CHECK(part->label(0) == source->label(6));
}

TEST_CASE("raw pictures are packed without loss") {
  TempFolder folder;
  std::string pictures = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3},
              labels = {0, 0, 8, 1, 0, 0, 0, 2, 1, 0};
  for (int i = 0; i < 12; ++i) pictures += static_cast<char>(i * 21);
  put_file(folder / "t-images-idx3-ubyte", pictures);
  put_file(folder / "t-labels-idx1-ubyte", labels);
  const auto source = open_labelled(folder / "t-images-idx3-ubyte");
  const PackResult result = pack(*source, folder / "out", "digits");
  CHECK(result.pattern == (folder / "out/digits-000000.tar").string());
  check_equal(*source, *open_labelled(result.pattern));
}

TEST_CASE(
    "packing again under the same name leaves no old shards, and the same source gives the same bytes") {
  TempFolder folder;
  write_members(folder / "many", make_members({"ant", "bee"}, 6));
  write_members(folder / "few", make_members({"ant", "bee"}, 2));
  PackOptions options;
  options.shards.samples = 3;
  pack(*open_labelled(folder / "many"), folder / "out", "a", options);
  pack(*open_labelled(folder / "few"), folder / "out", "a", options);
  CHECK(open_labelled(folder / "out/a-*.tar")->count() == 4);
  pack(*open_labelled(folder / "few"), folder / "twice", "a", options);
  for (const char* file : {"a-000000.tar", "a-000001.tar", "a.json"})
    CHECK(read_text(folder / "out" / file) == read_text(folder / "twice" / file));
}

TEST_CASE("damaged and newer shard indices are refused by name, foreign JSON is ignored") {
  TempFolder folder;
  write_members(folder / "set", make_members({"ant", "bee"}, 2));
  pack(*open_labelled(folder / "set"), folder / "out", "a");
  const std::string good = read_text(folder / "out/a.json"), shard = folder / "out/a-000000.tar";
  const auto with = [&](const std::string& text) {
    put_file(folder / "out/a.json", text);
    return open_labelled(shard)->classes();
  };
  CHECK(with(good) == std::vector<std::string>{"ant", "bee"});
  CHECK(with("{\"some\": 1}") == std::vector<std::string>{"0", "1"});
  CHECK_THROWS_WITH_AS(with(good.substr(0, good.size() / 2)), doctest::Contains("the index is damaged"),
                       InputError);
  std::string newer = good;
  newer.replace(newer.find("\"version\": 1"), 12, "\"version\": 2");
  CHECK_THROWS_WITH_AS(with(newer), doctest::Contains("index of version 2"), InputError);
  std::string fewer = good;
  fewer.replace(fewer.find(",\n  \"bee\""), 9, "");
  CHECK_THROWS_WITH_AS(with(fewer), doctest::Contains("names only 1 classes"), InputError);
  CHECK_THROWS_AS(pack(*open_labelled(folder / "set"), folder / "out", "a/b"), InputError);
}

// What packing can do beyond copying.
#include <atomic>
#include <doctest/doctest.h>
#include <map>
#include <set>

#include <millrace/error.h>

#include "base/file.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/jpeg.h"
#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/formats/open_dataset.h"
#include "data/table/index.h"
#include "data/table/labels.h"
#include "data/table/query.h"
#include "data/tools/pack/ordered.h"
#include "data/tools/pack/pack.h"
#include "data/tools/pack/pack_journal.h"
#include "data/tools/pack/pack_samples.h"
#include "support/labelled.h"
#include "support/packed.h"
#include "support/pictures.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;
namespace fs = std::filesystem;

namespace {

/// Two classes of pictures of many sizes.
std::string make_set(const TempFolder& folder, int count = 20) {
  for (int i = 0; i < count; ++i)
    put_file(folder / ("set/" + std::string(i % 2 ? "bee" : "ant") + "/" + std::to_string(100 + i) + ".jpg"),
             make_jpeg(20 + i, 60 - i, 3, static_cast<uint64_t>(i)));
  return folder / "set";
}

/// All files in a folder but the indices, which hold times.
std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() != ".mrx") files[entry.path().filename()] = read_text(entry.path());
  return files;
}

std::string text_of(const LabelledPictures& source, int64_t i) {
  const StoredPicture sample = source.picture(i);
  return {sample.bytes.begin(), sample.bytes.end()};
}

}  // namespace

TEST_CASE("what threads make ahead of time comes in order, and what they throw at its place") {
  std::atomic<int64_t> ahead{0};
  int64_t taken = 0;
  Ordered<int64_t> numbers(5, 500, 4, 8, [&](int64_t i) {
    ahead = std::max<int64_t>(ahead, i);
    if (i == 300) throw InputError("three hundred");
    return i * i;
  });
  for (int64_t i = 5; i < 300; ++i) {
    CHECK(numbers.next() == i * i);
    taken = i;
    CHECK(ahead <= taken + 9);
  }
  CHECK_THROWS_WITH_AS(numbers.next(), "three hundred", InputError);
  CHECK(numbers.next() == 301 * 301);  // and it ends in order with results that nobody takes
}

TEST_CASE("pictures that are too large are resized and encoded anew, all others stay byte for byte") {
  TempFolder folder;
  const auto source = open_labelled(make_set(folder));
  PackOptions options;
  options.pictures.max_side = 48;
  options.pictures.quality = 80;
  std::map<std::string, std::string> first;
  for (const int threads : {1, 3}) {
    options.threads = threads;
    const std::string out = folder / ("out" + std::to_string(threads));
    const auto packed = open_labelled(pack(*source, out, "a", options).pattern);
    REQUIRE(packed->count() == 20);
    int same = 0;
    for (int64_t i = 0; i < 20; ++i) {
      Picture before, after;
      REQUIRE(decode_picture(source->picture(i), before).empty());
      if (before.width <= 48) {
        ++same;
        CHECK(text_of(*packed, i) == text_of(*source, i));
        continue;
      }
      const Picture small = resize(before, before.height * 48 / before.width, 48);
      const auto wanted = encode_jpeg(small, 80);
      CHECK(text_of(*packed, i) == std::string(wanted.begin(), wanted.end()));
    }
    CHECK(same == 8);
    if (threads == 1) first = files_in(out);
    CHECK(files_in(out) == first);
  }

  options.pictures = {};
  options.pictures.resize = 24;
  const auto shorter = open_labelled(pack(*source, folder / "shorter", "a", options).pattern);
  for (int64_t i = 0; i < 20; ++i) {
    Picture before, after;
    REQUIRE(decode_picture(source->picture(i), before).empty());
    REQUIRE(decode_picture(shorter->picture(i), after).empty());
    CHECK(std::min(after.height, after.width) == std::min({before.height, before.width, 24}));
  }
}

TEST_CASE("options that make no sense are refused") {
  TempFolder folder;
  const auto source = open_labelled(make_set(folder, 4));
  const auto fails = [&](auto change, const char* what) {
    PackOptions options;
    change(options);
    CHECK_THROWS_WITH_AS(pack(*source, folder / "out", "a", options), doctest::Contains(what), InputError);
    CHECK(!fs::exists(folder / "out"));
  };
  fails([](auto& o) { o.pictures.quality = 101; }, "--quality 101");
  fails([](auto& o) { o.pictures.max_side = -1; }, "--max-side -1");
  fails([](auto& o) { o.pictures.versions = 2; }, "needs --augmentations");
  fails([](auto& o) { o.pictures.augmentations = {"flip"}; }, "goes with --augment");
  fails([](auto& o) { o.format = "tfrecords"; }, "did you mean 'tfrecord'");
}

TEST_CASE("versions of pictures differ, are the same again, and belong to their sample") {
  TempFolder folder;
  const auto source = open_labelled(make_set(folder, 6));
  PackOptions options;
  options.pictures.versions = 3;
  options.pictures.augmentations = {"random-resized-crop 16", "flip"};
  const auto packed = open_labelled(pack(*source, folder / "out", "a", options).pattern);
  REQUIRE(packed->count() == 18);
  std::set<std::string> contents;
  for (int64_t i = 0; i < 18; ++i) {
    CHECK(packed->label(i) == source->label(i / 3));
    CHECK(key_of(*packed, i) == "0000000" + std::to_string(i / 3) + "-" + std::to_string(i % 3));
    Picture picture;
    REQUIRE(decode_picture(packed->picture(i), picture).empty());
    CHECK(picture.height == 16);
    contents.insert(text_of(*packed, i));
  }
  CHECK(contents.size() > 15);
  pack(*source, folder / "again", "a", options);
  CHECK(files_in(folder / "again") == files_in(folder / "out"));
  options.pictures.seed = 2;
  pack(*source, folder / "other", "a", options);
  CHECK(files_in(folder / "other") != files_in(folder / "out"));
}

TEST_CASE("pictures without classes are resized and augmented, too, and nothing is asked for in vain") {
  TempFolder folder;
  Members members, pairs;
  for (int i = 0; i < 4; ++i) {
    const std::string key = "k" + std::to_string(i);
    members.push_back({key + ".jpeg", make_jpeg(40 + i, 60, 3, static_cast<uint64_t>(i))});
    members.push_back({key + ".txt", "text " + std::to_string(i)});
    pairs.push_back({key + ".left.jpg", make_jpeg(40, 60, 3, 1)});
    pairs.push_back({key + ".right.jpg", make_jpeg(40, 60, 3, 2)});
  }
  put_file(folder / "in.tar", make_tar(members));
  put_file(folder / "pairs.tar", make_tar(pairs));
  put_file(folder / "x.csv", "a,b\n1,2\n");
  const auto source = open_dataset(folder / "in.tar");
  REQUIRE(!find_label(*source));
  const auto size = [](const Dataset& dataset, int64_t i, const std::string& column) {
    Picture picture;
    const Value value = dataset.read(i, dataset.column(column));
    REQUIRE(decode_picture(std::get<Bytes>(value).view(), picture).empty());
    return std::pair(picture.height, picture.width);
  };
  PackOptions options;
  options.verify = true;
  options.pictures.resize = 20;
  const auto smaller = open_dataset(pack(*source, folder / "small", "a", options).pattern);
  REQUIRE(smaller->count() == 4);
  CHECK(size(*smaller, 0, "jpeg") == std::pair(20, 30));
  // Both of a pair.
  const auto both =
      open_dataset(pack(*open_dataset(folder / "pairs.tar"), folder / "both", "a", options).pattern);
  CHECK(size(*both, 3, "left.jpg") == std::pair(20, 30));
  CHECK(size(*both, 3, "right.jpg") == std::pair(20, 30));

  options.pictures = {};
  options.pictures.versions = 3;
  options.pictures.augmentations = {"random-resized-crop 16", "flip"};
  for (const std::string format : {"", "tfrecord"}) {
    options.format = format;
    const PackResult result = pack(*source, folder / ("many" + format), "a", options);
    CHECK(result.different == 0);
    const auto many = open_dataset(result.pattern);
    REQUIRE(many->count() == 12);
    std::set<std::string> contents;
    for (int64_t i = 0; i < 12; ++i) {
      CHECK(size(*many, i, "jpeg") == std::pair(16, 16));
      contents.emplace(std::get<Bytes>(many->read(i, many->column("jpeg"))).text());
      CHECK(std::get<std::string>(many->read(i, many->column("txt"))) == "text " + std::to_string(i / 3));
    }
    CHECK(contents.size() > 8);
  }
  options.format.clear();
  const auto refused = [&](const char* file, const char* why) {
    CHECK_THROWS_WITH_AS(pack(*open_dataset(folder / file), folder / "none", "a", options),
                         doctest::Contains(why), InputError);
    CHECK(!fs::exists(folder / "none"));
  };
  refused("pairs.tar", "there are several: left.jpg, right.jpg");
  refused("x.csv", "has no pictures that could be resized or augmented");
}

TEST_CASE("all columns go along, into tars and into another format, with keys where they are wanted") {
  TempFolder folder;
  Members members;
  for (int i = 0; i < 5; ++i) {
    const std::string key = "k" + std::to_string(i);
    members.push_back({key + ".cls", std::to_string(i % 2)});
    members.push_back({key + ".jpg", make_jpeg(8, 8, 3, static_cast<uint64_t>(i))});
    members.push_back({key + ".json", "{\"a\":" + std::to_string(i) + "}"});
    if (i != 3) members.push_back({key + ".txt", "text " + std::to_string(i)});
  }
  put_file(folder / "in.tar", make_tar(members));
  const std::shared_ptr<const LabelledPictures> source = open_labelled(folder / "in.tar");
  PackOptions options;
  options.keep_keys = true;
  options.verify = true;
  const PackResult result = pack(*source, folder / "out", "a", options);
  CHECK(result.different == 0);
  CHECK(read_text(result.pattern).size() == read_text(folder / "in.tar").size());
  const auto packed = open_dataset(result.pattern);
  CHECK(packed->columns() == open_dataset(folder / "in.tar")->columns());
  CHECK(std::get<std::string>(packed->read(4, packed->column("txt"))) == "text 4");
  CHECK(!packed->has(3, packed->column("txt")));
  CHECK(std::get<std::string>(packed->read(4, packed->column("__key__"))) == "k4");

  options.format = "tfrecord";
  const PackResult other = pack(*select(source, std::vector<int64_t>{0, 1, 4}), folder / "tf", "a", options);
  CHECK(other.pattern == (folder / "tf/a-000000.tfrecord").string());
  CHECK(other.different == 0);
  const auto records = open_labelled(other.pattern);
  CHECK(records->count() == 3);
  CHECK(text_of(*records, 2) == text_of(*source, 4));

  // Without pictures: samples of columns alone, chosen by a condition.
  put_file(folder / "texts.tar", make_tar({{"a.id", "1"}, {"a.txt", "x"}, {"b.id", "2"}, {"b.txt", "y"}}));
  const auto rows = where(open_dataset(folder / "texts.tar"), "id > 1");
  options = {};
  options.verify = true;
  const auto texts = open_dataset(pack(*rows, folder / "rows", "t", options).pattern);
  CHECK(texts->count() == 1);
  CHECK(std::get<std::string>(texts->read(0, texts->column("txt"))) == "y");
  CHECK(std::get<int64_t>(texts->read(0, texts->column("id"))) == 2);
}

TEST_CASE("bad pictures are left out where they are noticed, up to a limit") {
  TempFolder folder;
  const std::string set = make_set(folder);
  put_file(fs::path(set) / "ant/104.jpg", make_jpeg(24, 56, 3, 4).substr(0, 300));
  const auto source = open_labelled(set);
  PackOptions options;
  CHECK(pack(*source, folder / "copied", "a", options).samples == 20);
  options.pictures.check = true;
  CHECK_THROWS_WITH_AS(pack(*source, folder / "out", "a", options),
                       doctest::Contains("ant/104.jpg: Premature"), InputError);
  options.most_bad = 1;
  options.verify = true;
  const PackResult result = pack(*source, folder / "out", "a", options);
  CHECK(result.samples == 19);
  REQUIRE(result.bad.size() == 1);
  CHECK(result.bad[0].index == 2);
  CHECK(result.different == 0);
  const auto packed = open_labelled(result.pattern);
  CHECK(key_of(*packed, 2) == "00000003");  // the number in the source
}

TEST_CASE("what is no sound is left out of tars, which call members by what they are, up to a limit") {
  TempFolder folder;
  const std::string wav("RIFF\x24\0\0\0WAVEfmt ", 16);  // as much as shows what it is
  put_file(fs::path(folder / "set/no/a.wav"), wav);
  put_file(fs::path(folder / "set/yes/b.wav"), wav);
  put_file(fs::path(folder / "set/yes/c.wav"), "");
  const std::shared_ptr<const Dataset> source = open_dataset(folder / "set");
  PackOptions options;
  CHECK_THROWS_WITH_AS(
      pack(*source, folder / "out", "a", options),
      doctest::Contains("yes/c.wav: 0 bytes: the column 'audio' holds content of no known kind"), InputError);
  options.most_bad = 1;
  const PackResult result = pack(*source, folder / "out", "a", options);
  CHECK(result.samples == 2);
  REQUIRE(result.bad.size() == 1);
  CHECK(result.bad[0].name.ends_with("yes/c.wav"));
  const auto packed = open_dataset(result.pattern);
  CHECK(std::get<std::string>(packed->read(1, *find_label(*packed))) == "yes");
  CHECK(packed->columns()[packed->column("wav")].kind == ColumnKind::audio);
}

TEST_CASE("indices lie beside the shards, fit, and go with them") {
  TempFolder folder;
  const auto source = open_labelled(make_set(folder));
  PackOptions options;
  options.shards.samples = 6;
  pack(*source, folder / "out", "a", options);
  const auto packed = open_dataset(folder / "out/a-*.tar");
  CHECK(packed->notes().empty());
  for (const auto& file : packed->files()) {
    std::string why;
    CHECK(open_index(*file, why));
  }
  options.shards.samples = 100;
  options.index = false;
  pack(*source, folder / "out", "a", options);
  CHECK(files_in(folder / "out").size() == 2);
  for (const auto& entry : fs::directory_iterator(folder / "out")) CHECK(entry.path().extension() != ".mrx");
}

TEST_CASE("an interrupted pack goes on behind its complete shards; another command begins anew") {
  TempFolder folder;
  const auto source = open_labelled(make_set(folder));
  PackOptions options;
  options.shards.samples = 3;
  pack(*source, folder / "whole", "a", options);
  std::vector<std::string> notes;
  options.note = [&](const std::string& text) { notes.push_back(text); };
  const std::shared_ptr<const LabelledPictures> shared = open_labelled(folder / "set");
  const std::vector<PackPart> parts = {{select(shared, std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}), "b"},
                                       {shared, "a"}};
  int64_t calls = 0;
  options.stop = [&] { return ++calls > 7 + 10; };
  CHECK(pack(parts, folder / "out", options).empty());
  CHECK(read_journal(folder / "out/b.journal")->complete);
  CHECK(read_journal(folder / "out/a.journal")->done == 9);
  CHECK(!fs::exists(folder / "out/a.json"));
  const auto kept = fs::last_write_time(folder / "out/a-000002.tar");
  const auto complete = fs::last_write_time(folder / "out/b-000000.tar");

  options.stop = nullptr;
  CHECK(pack(parts, folder / "out", options).at(1).samples == 20);
  CHECK(fs::last_write_time(folder / "out/a-000002.tar") == kept);
  CHECK(fs::last_write_time(folder / "out/b-000000.tar") == complete);
  CHECK(notes.size() == 2);
  CHECK(notes.back().find("goes on behind 3 complete shards, 9 of 20") != std::string::npos);
  auto files = files_in(folder / "out");
  std::erase_if(files, [](const auto& file) { return file.first[0] == 'b'; });
  CHECK(files == files_in(folder / "whole"));

  // Another quality, then a changed source.
  for (const bool changed : {false, true}) {
    calls = 0;
    notes.clear();
    options.stop = [&] { return ++calls > 10; };
    CHECK(pack({{shared, "a"}}, folder / "out", options).empty());
    options.stop = nullptr;
    if (changed)
      put_file(folder / "set/ant/104.jpg", make_jpeg(9, 9, 3, 4));
    else
      options.pictures.quality = 50;
    CHECK(pack({{open_labelled(folder / "set"), "a"}}, folder / "out", options).at(0).samples == 20);
    REQUIRE(notes.size() == 1);
    CHECK(notes[0].find("begins anew") != std::string::npos);
  }
  pack(*open_labelled(folder / "set"), folder / "whole", "a", options);
  files = files_in(folder / "out");
  std::erase_if(files, [](const auto& file) { return file.first[0] == 'b'; });
  CHECK(files == files_in(folder / "whole"));
}

TEST_CASE("a damaged journal and shards that are gone begin anew") {
  TempFolder folder;
  const auto source = open_labelled(make_set(folder));
  PackOptions options;
  options.shards.samples = 3;
  pack(*source, folder / "whole", "a", options);
  for (const bool journal : {true, false}) {
    int64_t calls = 0;
    options.stop = [&] { return ++calls > 10; };
    CHECK(pack({{open_labelled(folder / "set"), "a"}}, folder / "out", options).empty());
    if (journal)
      put_file(folder / "out/a.journal", "{\"format\": \"millrace-pack-1\", \"done\": \"x");
    else
      fs::remove(folder / "out/a-000001.tar");
    options.stop = nullptr;
    pack(*source, folder / "out", "a", options);
    CHECK(files_in(folder / "out") == files_in(folder / "whole"));
  }
}

TEST_CASE("verification names what differs: content, names, labels, counts, and what is beyond") {
  TempFolder folder;
  const auto source = open_labelled(make_set(folder, 6));
  const PackOptions options;
  const fs::path shard = pack(*source, folder / "out", "a", options).pattern;
  const std::string good = read_text(shard);
  const auto shards = read_shard_index(folder / "out/a.json")->shards;
  const auto verified = [&](const std::string& content, const Dataset& against) {
    fs::remove(shard);
    put_file(shard, content);
    PackResult result;
    verify_pack(PackSource(against), folder / "out", shards, options, result);
    std::string all;
    for (const std::string& difference : result.differences) all += difference + "\n";
    CHECK(static_cast<int64_t>(result.differences.size()) == result.different);
    return all;
  };
  CHECK(verified(good, *source) == "");

  std::string changed = good;
  changed[changed.find("\xff\xd8") + 200] ^= 1;
  std::string found = verified(changed, *source);
  CHECK(found.find("a-000000.tar: ") != std::string::npos);  // the whole shard
  CHECK(found.find("00000000.jpg: ") != std::string::npos);
  CHECK(found.find("(of " + source->name(0) + ")") != std::string::npos);

  changed = good;
  changed[512] = '1';  // the first sample's class
  CHECK(verified(changed, *source).find("00000000.cls: 1 bytes of checksum") != std::string::npos);

  CHECK(verified(good.substr(0, good.size() - 2000), *source).find("a-000000.tar") != std::string::npos);

  const std::shared_ptr<const LabelledPictures> shared = open_labelled(folder / "set");
  CHECK(verified(good, *select(shared, std::vector<int64_t>{0, 1, 2, 3, 4})).find("comes from no sample") !=
        std::string::npos);
  PackResult fewer;
  verify_pack(PackSource(*source), folder / "out", {}, options, fewer);
  CHECK(fewer.different == 6);
  CHECK(fewer.differences[0].find("00000000.cls is not in the shards") != std::string::npos);
}

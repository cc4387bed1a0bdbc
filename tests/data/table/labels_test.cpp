#include "data/table/labels.h"

#include <doctest/doctest.h>
#include <map>
#include <zlib.h>

#include <millrace/error.h>

#include "base/file.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/formats/tar_members.h"
#include "support/labelled.h"
#include "support/pictures.h"
#include "support/refusal.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

std::string bytes_at(const LabelledPictures& source, int64_t index) {
  const StoredPicture sample = source.picture(index);
  return {sample.bytes.begin(), sample.bytes.end()};
}

using Names = std::vector<std::string>;

/// PAX or GNU extension member before `members`.
std::string extension_tar(char type, const std::string& content, const Members& members) {
  std::string header = tar_header("ext", content.size());
  header[156] = type;
  unsigned sum = 8 * ' ';
  for (size_t i = 0; i < 512; ++i)
    if (i < 148 || i >= 156) sum += static_cast<uint8_t>(header[i]);
  snprintf(&header[148], 7, "%06o", sum);
  return header + content + std::string(tar_padding(content.size()), '\0') + make_tar(members);
}

std::string idx(const std::vector<uint32_t>& sizes, const std::string& data) {
  std::string out = {0, 0, 8, static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(size >> shift);
  return out + data;
}

void write_gz(const std::filesystem::path& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

}  // namespace

TEST_CASE("a folder and a tar of class folders give the same samples, classes sorted by name") {
  TempFolder folder;
  const Members members = make_members({"train/dog", "train/ant", "train/cat"}, 3);
  write_members(folder / "set", members);
  put_file(folder / "set.tar", make_tar(members));
  const auto files = open_labelled(folder / "set"), tar = open_labelled(folder / "set.tar");
  CHECK(files->count() == 9);
  CHECK(tar->count() == 9);
  CHECK(files->classes() == Names{"ant", "cat", "dog"});
  CHECK(tar->classes() == files->classes());
  CHECK(tar->label(0) == 2);  // in the order of the tar
  CHECK(tar->name(0) == (folder / "set.tar").string() + ":train/dog/1000.jpg");
  CHECK(files->label(0) == 0);  // in the order of the names
  CHECK(files->name(8) == (folder / "set/train/dog/1002.jpg").string());
  std::map<std::string, int64_t> by_bytes;
  for (int64_t i = 0; i < 9; ++i) by_bytes[bytes_at(*tar, i)] = tar->label(i);
  CHECK(by_bytes.size() == 9);
  for (int64_t i = 0; i < 9; ++i) CHECK(by_bytes.at(bytes_at(*files, i)) == files->label(i));
}

TEST_CASE("tar members with PAX, GNU and prefixed names are found under their long names") {
  TempFolder folder;
  const std::string jpeg = make_jpeg(8, 8, 3, 1), deep(120, 'd');
  const std::string name = deep + "/cat/1.jpg", record = " path=" + name + "\n";
  const std::string pax = std::to_string(record.size() + 3) + record;
  put_file(folder / "pax.tar", extension_tar('x', pax, {{"short", jpeg}}));
  put_file(folder / "gnu.tar", extension_tar('L', name + '\0', {{"short", jpeg}}));
  for (const char* file : {"pax.tar", "gnu.tar"}) {
    const auto source = open_labelled(folder / file);
    CHECK(source->classes() == Names{"cat"});
    CHECK(source->name(0).ends_with(name));
    CHECK(bytes_at(*source, 0) == jpeg);
  }
  put_file(folder / "empty.tar", extension_tar('x', "8 size=\n", {{"cat/1.jpg", jpeg}}));
  CHECK_THROWS_WITH_AS(open_labelled(folder / "empty.tar"), doctest::Contains("damaged PAX header"),
                       InputError);
}

TEST_CASE("WebDataset shards are read as one source by braces, wildcards and folder") {
  TempFolder folder;
  Members all;
  for (int i = 0; i < 6; ++i) {
    all.emplace_back("000" + std::to_string(i) + ".cls", std::to_string(i % 3));
    all.emplace_back("000" + std::to_string(i) + ".jpg", make_jpeg(8, 8, 3, i));
  }
  for (int shard = 0; shard < 3; ++shard)
    put_file(folder / ("w-00" + std::to_string(shard) + ".tar"),
             make_tar({all.begin() + 4 * shard, all.begin() + 4 * shard + 4}));
  for (const char* pattern : {"w-{000..002}.tar", "w-*.tar", "w-{000,001,002}.tar", "w-00[0-2].tar", ""}) {
    const auto source = open_labelled((folder / pattern).string());
    CHECK(source->count() == 6);
    CHECK(source->classes() == Names{"0", "1", "2"});
    for (int64_t i = 0; i < 6; ++i) {
      CHECK(source->label(i) == i % 3);
      CHECK(bytes_at(*source, i) == all[2 * i + 1].second);
    }
  }
  CHECK_THROWS_WITH_AS(open_labelled(folder / "w-{000..003}.tar"),
                       doctest::Contains("w-003.tar: no such file"), IoError);
  CHECK_THROWS_WITH_AS(open_labelled(folder / "v-*.tar"), doctest::Contains("matches no file"), InputError);
  CHECK_THROWS_WITH_AS(open_labelled(folder / "w-{2..0}.tar"), doctest::Contains("is no range"), InputError);
}

TEST_CASE("WebDataset samples without label or picture, with a member twice or a bad label are named") {
  TempFolder folder;
  const std::string jpeg = make_jpeg(8, 8, 3, 1);
  const auto problem = [&](const Members& members) {
    put_file(folder / "w.tar", make_tar(members));
    return testing::refusal([&] { open_labelled(folder / "w.tar"); });
  };
  const Members good = {{"a.cls", "0"}, {"a.jpg", jpeg}};
  const auto with = [&](Members more) {
    more.insert(more.begin(), good.begin(), good.end());
    return more;
  };
  CHECK(problem(good) == "");
  CHECK(problem(with({{"__meta__", "?"},
                      {"__m.x__", "?"},
                      {".hidden.jpg", "?"},
                      {"b.cls", " 1\n"},
                      {"b.JPG", jpeg},
                      {"b.json", "{}"}})) == "");
  CHECK(problem(with({{"b.jpg", jpeg}})).find("sample b has no label (but jpg)") != std::string::npos);
  CHECK(problem(with({{"b.cls", "1"}})).find("sample b has no picture (but cls)") != std::string::npos);
  CHECK(problem(with({{"b.cls", "1"}, {"b.cls", "1"}})).find("two members .cls") != std::string::npos);
  for (const char* label : {"", "x", "-1", "1.5", "99999999999999999999"})
    CHECK(problem(with({{"b.cls", label}, {"b.jpg", jpeg}})).find("b.cls holds no class number") !=
          std::string::npos);
}

TEST_CASE("IDX pictures find their labels beside them, plain or gzipped") {
  TempFolder folder;
  const std::string pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  write_gz(folder / "t-images-idx3-ubyte.gz", idx({2, 2, 3}, pixels));
  write_gz(folder / "t-labels-idx1-ubyte.gz", idx({2}, std::string{4, 1}));
  put_file(folder / "u-images.idx3-ubyte", idx({2, 2, 3}, pixels));
  put_file(folder / "u-labels.idx1-ubyte", idx({2}, std::string{4, 1}));
  for (const char* file : {"t-images-idx3-ubyte.gz", "u-images.idx3-ubyte"}) {
    const auto source = open_labelled(folder / file);
    CHECK(source->count() == 2);
    CHECK(source->classes() == Names{"0", "1", "2", "3", "4"});
    CHECK(source->label(0) == 4);
    Picture picture;
    CHECK(decode_picture(source->picture(1), picture) == "");
    CHECK(picture == Picture{2, 3, 1, {7, 8, 9, 10, 11, 12}});
  }
}

TEST_CASE("damaged IDX files are refused with the reason") {
  TempFolder folder;
  const std::string path = folder / "t-images-idx3-ubyte", labels = folder / "t-labels-idx1-ubyte";
  put_file(path, idx({2, 2, 3}, std::string(12, 'p')));
  CHECK_THROWS_WITH_AS(open_labelled(path), doctest::Contains("put t-labels-idx1-ubyte into the same folder"),
                       InputError);
  put_file(labels, idx({3}, "abc"));
  CHECK_THROWS_WITH_AS(open_labelled(path), doctest::Contains("has 2 pictures, but"), InputError);
  CHECK_THROWS_WITH_AS(open_labelled(labels), doctest::Contains("give the file with the pictures"),
                       InputError);
  put_file(labels, idx({2}, "ab"));
  put_file(path, idx({2, 2, 3}, std::string(11, 'p')));
  CHECK_THROWS_WITH_AS(open_labelled(path), doctest::Contains("truncated: 11 of 12 bytes"), InputError);
  put_file(path, idx({0xffffffff, 0xffffffff, 0xffffffff}, "p"));
  CHECK_THROWS_WITH_AS(open_labelled(path), doctest::Contains("too large"), InputError);
  put_file(path, idx({0xffff, 0xff, 0xff}, "p"));  // 4 GB promised, one byte there
  CHECK_THROWS_WITH_AS(open_labelled(path), doctest::Contains("truncated"), InputError);
  write_gz(path, idx({2, 2, 3}, std::string(12, 'p')));
  const std::string zipped = read_text(path);
  put_file(path, zipped.substr(0, zipped.size() - 12));
  CHECK_THROWS_AS(open_labelled(path), InputError);
}

TEST_CASE("missing, empty and foreign files, empty classes and stray pictures each get one clear message") {
  TempFolder folder;
  CHECK_THROWS_WITH_AS(open_labelled(folder / "none"), doctest::Contains("none: no such file or folder"),
                       IoError);
  std::filesystem::create_directories(folder / "empty");
  CHECK_THROWS_WITH_AS(open_labelled(folder / "empty"), doctest::Contains("has no pictures"), InputError);
  put_file(folder / "zero.tar", "");
  CHECK_THROWS_WITH_AS(open_labelled(folder / "zero.tar"), doctest::Contains("the file is empty"),
                       InputError);
  put_file(folder / "text.tar", std::string(5000, 'x'));
  CHECK_THROWS_WITH_AS(open_labelled(folder / "text.tar"), doctest::Contains("is no data source"),
                       InputError);

  Members members = make_members({"cat", "dog"}, 2);
  members.emplace_back("owl/", "");
  write_members(folder / "hole", members);
  CHECK_THROWS_WITH_AS(open_labelled(folder / "hole"), doctest::Contains("class owl: no pictures"),
                       InputError);
  put_file(folder / "hole/owl/readme.txt", "x");
  CHECK_THROWS_WITH_AS(open_labelled(folder / "hole"), doctest::Contains("but other files, as readme.txt"),
                       InputError);
  put_file(folder / "hole.tar", make_tar(members));
  CHECK_THROWS_WITH_AS(open_labelled(folder / "hole.tar"), doctest::Contains("class owl: no pictures"),
                       InputError);

  members.back() = {"stray.jpg", "x"};
  write_members(folder / "stray", members);
  CHECK_THROWS_WITH_AS(open_labelled(folder / "stray"), doctest::Contains("stray.jpg lies outside"),
                       InputError);
  put_file(folder / "stray.tar", make_tar(members));
  CHECK_THROWS_WITH_AS(open_labelled(folder / "stray.tar"), doctest::Contains("stray.jpg lies outside"),
                       InputError);
  put_file(folder / "notes.tar", make_tar({{"a/readme.txt", "x"}}));
  CHECK_THROWS_WITH_AS(open_labelled(folder / "notes.tar"), doctest::Contains("has no pictures"), InputError);
}

TEST_CASE("a tar cut anywhere is called truncated") {
  TempFolder folder;
  const std::string tar = make_tar(make_members({"cat", "dog"}, 2));
  for (size_t size = 512; size + 1024 < tar.size(); size += 100) {
    put_file(folder / "cut.tar", tar.substr(0, size));
    CHECK_THROWS_WITH_AS(open_labelled(folder / "cut.tar"), doctest::Contains("truncated"), InputError);
  }
}

TEST_CASE("damaged tars never crash: they are read or give an error") {
  const std::string jpeg = make_jpeg(8, 8, 3, 1), record = " path=long/cat/2.jpg\n";
  std::string tar = make_tar({{"a/cat/1.jpg", jpeg}});
  tar.resize(tar.size() - 1024);
  tar += extension_tar('x', std::to_string(record.size() + 2) + record,
                       {{"x", jpeg}, {"b.cls", "1"}, {"b.jpg", jpeg}});
  RandomStream random(5, 0);
  int opened = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = tar;
    // Damage lands in the headers, whose checksum is then mended so that the fields themselves are tried.
    const size_t header = random.below(static_cast<uint32_t>(bytes.size() / 512)) * 512;
    for (uint32_t i = 0; i <= random.below(3); ++i)
      bytes[header + random.below(512)] = static_cast<char>(random.next());
    unsigned sum = 8 * ' ';
    for (size_t i = 0; i < 512; ++i)
      if (i < 148 || i >= 156) sum += static_cast<uint8_t>(bytes[header + i]);
    snprintf(&bytes[header + 148], 7, "%06o", sum);
    const std::vector<uint8_t> exact(bytes.begin(),
                                     bytes.end());  // reading past its end is seen by sanitizers
    try {
      for_each_tar_member(*memory_file("d.tar", Bytes(exact, nullptr)), [&](const TarMember& member) {
        CHECK(member.offset <= exact.size());
        CHECK(member.size <= exact.size() - member.offset);
        return true;
      });
      ++opened;
    } catch (const InputError& error) {
      CHECK(std::string(error.what()).starts_with("d.tar: "));
    }
  }
  CHECK(opened > 0);
}

TEST_CASE("CIFAR-10's tars and MNIST's IDX files open with their counts and classes") {
  const std::string data = real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data (set MILLRACE_DATA)");
    return;
  }
  const auto train = open_labelled(data + "/cifar10/train.tar"),
             test = open_labelled(data + "/cifar10/test.tar");
  CHECK(train->count() == 50000);
  CHECK(test->count() == 10000);
  CHECK(train->classes() ==
        Names{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"});
  CHECK(test->classes() == train->classes());
  std::vector<int> counts(10);
  for (int64_t i = 0; i < train->count(); ++i) ++counts[train->label(i)];
  for (const int count : counts) CHECK(count == 5000);
  Picture picture;
  CHECK(decode_picture(train->picture(49999), picture) == "");
  CHECK(picture.size_text() == "32x32 colour");

  const auto digits = open_labelled(data + "/mnist/train-images-idx3-ubyte.gz");
  CHECK(digits->count() == 60000);
  CHECK(digits->classes().size() == 10);
  CHECK(digits->label(0) == 5);
  CHECK(decode_picture(digits->picture(59999), picture) == "");
  CHECK(picture.size_text() == "28x28 grey");
}

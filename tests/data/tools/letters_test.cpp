#include "data/tools/letters.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <set>

#include <millrace/error.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/format.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/formats/open_dataset.h"
#include "support/labelled.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;

namespace {

bool fonts_installed() {
  for (const Typeface& typeface : letter_typefaces())
    for (const std::string& file : typeface.files)
      if (!std::filesystem::exists(std::filesystem::path("/usr/share/fonts") / file)) {
        MESSAGE("skipped: " << typeface.package << " is not installed");
        return false;
      }
  return true;
}

/// Checksum over names, labels and bytes of all samples.
uint32_t fingerprint(const testing::LabelledPictures& source, const std::filesystem::path& root) {
  uint32_t crc = 0;
  for (int64_t i = 0; i < source.count(); ++i) {
    const std::string name = std::filesystem::path(source.name(i)).lexically_relative(root).string();
    const StoredPicture sample = source.picture(i);
    crc = crc32c(name.data(), name.size(), crc);
    crc = crc32c(sample.bytes.data(), sample.bytes.size(), crc);
  }
  return crc;
}

}  // namespace

TEST_CASE("letters come from twelve typefaces or more, some of them only in the test split") {
  std::set<std::string> train, test, files;
  for (const Typeface& typeface : letter_typefaces()) {
    (typeface.held_out ? test : train).insert(typeface.name);
    for (const std::string& file : typeface.files) CHECK(files.insert(file).second);
  }
  CHECK(train.size() >= 12);
  CHECK(test.size() >= 3);
  for (const std::string& name : test) CHECK(!train.contains(name));
}

TEST_CASE("letters are the same bytes every time and for any number of threads; another seed gives others") {
  if (!fonts_installed()) return;
  testing::TempFolder folder;
  LettersOptions options;
  options.train = 600;
  options.test = 95;
  int64_t last = 0;
  options.progress = [&](int64_t done, int64_t total) {
    CHECK(total == 695);
    last = done;
  };
  std::vector<uint32_t> prints;
  for (const int threads : {1, 3, 2}) {
    options.threads = threads;
    options.seed = prints.size() == 2 ? 2 : 1;
    const auto out = folder / ("letters" + std::to_string(threads));
    render_letters(out, options);
    CHECK(last == 695);
    const auto source = testing::open_labelled(out / "train");
    CHECK(source->count() == 600);
    CHECK(testing::open_labelled(out / "test")->count() == 95);
    CHECK(source->classes() == std::vector<std::string>{"A", "B", "C", "D", "E", "F", "G", "H", "I", "J"});
    Picture picture;
    double across = 0, down = 0, all = 0;
    for (int64_t i = 0; i < source->count(); ++i) {
      CHECK(decode_picture(source->picture(i), picture) == "");
      CHECK(picture.size_text() == "32x32 grey");
      // There is a letter: dark and light pixels differ.
      const auto [least, most] = std::minmax_element(picture.pixels.begin(), picture.pixels.end());
      CHECK(*most - *least > 60);
      for (size_t at = 0; at < picture.pixels.size(); ++at) {
        const double ink = std::abs(picture.pixels[at] - picture.pixels[0]);
        const size_t x = at % 32, y = at / 32;
        across += ink * (static_cast<double>(x) - 15.5);
        down += ink * (static_cast<double>(y) - 15.5);
        all += ink;
      }
    }
    // They stand in the middle, more or less.
    CHECK(std::abs(across / all) < 1);
    CHECK(std::abs(down / all) < 1);
    prints.push_back(fingerprint(*source, out));
    CHECK(!std::filesystem::exists(out.string() + ".partial"));
  }
  CHECK(prints[0] == prints[1]);
  CHECK(prints[0] != prints[2]);
}

TEST_CASE("signs are the pictures of letters, beside them a table that tells of each") {
  if (!fonts_installed()) return;
  testing::TempFolder folder;
  LettersOptions options;
  options.train = 300;
  options.test = 20;
  render_letters(folder / "letters", options);
  options.signs = true;
  std::vector<std::string> tables;
  for (const int threads : {1, 3}) {
    options.threads = threads;
    const auto out = folder / ("signs" + std::to_string(threads));
    render_letters(out, options);
    const std::vector<uint8_t> table = read_file(out / "train/labels.csv");
    tables.emplace_back(table.begin(), table.end());
  }
  CHECK(tables[0] == tables[1]);
  const auto signs = open_dataset((folder / "signs1/train").string());
  REQUIRE(signs->count() == 300);
  const auto read = [&](int64_t i, const char* column) {
    return signs->read(i, *signs->find_column(column));
  };
  std::set<std::string> lenses;
  for (int64_t i = 0; i < 300; ++i) {
    const auto letter = std::get<std::string>(read(i, "letter"));
    CHECK(letter == std::string(1, static_cast<char>('A' + i % 10)));
    const auto lens = std::get<std::string>(read(i, "lens"));
    lenses.insert(lens);
    // How large it looks, in pixels, from what the table says.
    const double pixels = std::get<double>(read(i, "size")) / std::get<double>(read(i, "distance")) *
                          (lens == "tele" ? 30 : 20);
    CHECK(pixels > 14.9);
    CHECK(pixels < 25.1);
    const auto picture = std::get<Bytes>(read(i, "image"));
    const std::vector<uint8_t> same =
        read_file(folder / fmt::format("letters/train/{}/{:05}.jpg", letter, i / 10));
    CHECK(std::equal(same.begin(), same.end(), picture.view().begin(), picture.view().end()));
  }
  CHECK(lenses == std::set<std::string>{"tele", "wide"});
}

TEST_CASE("missing fonts name their Debian package, and an existing folder is not touched") {
  testing::TempFolder folder;
  LettersOptions options;
  options.fonts = folder.path();
  CHECK_THROWS_WITH_AS(render_letters(folder / "letters", options),
                       doctest::Contains("apt-get install fonts-dejavu-core"), IoError);
  CHECK(!std::filesystem::exists(folder / "letters"));
  CHECK_THROWS_WITH_AS(render_letters(folder.path()), doctest::Contains("exists already"), InputError);
}

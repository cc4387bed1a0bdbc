// What pictures and texts themselves give away of their classes, which checks must find.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include "data/codecs/pictures/png.h"
#include "subjects.h"
#include "support/pictures.h"
#include "tables.h"

using namespace millrace;
using namespace millrace::testing;

namespace {

constexpr int side = 8, of_each = 60;

/// A grey picture of noise, 8 × 8 and more, as a PGM file.
std::string noise_file(RandomStream& random, int height = side, int width = side) {
  std::string file = fmt::format("P5 {} {} 255\n", width, height);
  for (int i = 0; i < height * width; ++i) file += static_cast<char>(random.below(240));
  return file;
}

/// What a check makes of pictures of two classes; `change` makes something of picture i of class b.
check::Finding of_pictures(const std::string& check,
                           const std::function<std::string(std::string, int)>& change,
                           const std::string& input = "", int of_b = of_each) {
  TempFolder folder;
  RandomStream random(3, 9);
  for (int i = 0; i < of_each; ++i) {
    put_file(folder / fmt::format("a/{}.pgm", i), noise_file(random));
    if (i < of_b) put_file(folder / fmt::format("b/{}.pgm", i), change(noise_file(random), i));
  }
  check::Options options;
  options.only = {check};
  return check::check(task::parse_recipe(fmt::format("[data]\ntrain = \"{}\"\ntest_share = "
                                                     "0.1\n[input]\nkind = \"picture\"\n{}\n[model]\nlayers "
                                                     "= [\"flatten\", \"linear 2\"]\n[train]\nbatch = 16\n",
                                                     folder.path().string(), input),
                                         "test.toml"),
                      options)
      .at(0);
}

/// The pixel at row 5, column 2 is white, or of another brightness, in so many pictures of class b.
check::Finding with_marks(int count, int of_b = of_each, char brightness = '\xff') {
  return of_pictures(
      "giveaway",
      [=](std::string file, int i) {
        if (i < count) file[file.size() - side * side + 5 * side + 2] = brightness;
        return file;
      },
      "", of_b);
}

check::Finding of_texts(const std::string& check, const std::function<std::string(bool, int)>& text) {
  Desk desk;
  std::string rows = "label\ttext\n";
  for (int i = 0; i < 200; ++i) rows += fmt::format("{}\t{}\n", i % 2 ? "spam" : "ham", text(i % 2 == 1, i));
  desk.write("train.tsv", rows);
  return desk.find(check, share, "column = \"label\"", "kind = \"text\"\ncolumn = \"text\"", "train.tsv");
}

}  // namespace

TEST_CASE("check giveaway: a mark that pictures of one class have, and where it is") {
  for (const int count : {of_each, 58}) {  // in nearly all
    const check::Finding finding = with_marks(count);
    is_caught(finding);
    CHECK(finding.saw.find("one place of 'b' (25 % from the left, 62 % from above)") != std::string::npos);
  }
  is_well(with_marks(0));
  is_well(with_marks(54));  // nine of ten
  is_caught(with_marks(14, 14));
  is_caught(with_marks(of_each, of_each, '\x40'));  // others are darker, or brighter
  is_well(with_marks(8, 8));                        // too few to say
}

TEST_CASE("check giveaway: sizes and formats of pictures that go with their classes") {
  RandomStream random(4, 9);
  const char* const one_size = "resize = 8\ncrop = 8";
  const auto larger = [&](int count) {
    return of_pictures(
        "giveaway",
        [&](const std::string& file, int i) { return i < count ? noise_file(random, side, side + 1) : file; },
        one_size);
  };
  CHECK(larger(of_each).saw.find("the size of a picture's file") != std::string::npos);
  is_caught(larger(of_each));
  is_well(larger(of_each / 2));
  const auto binary = of_pictures("giveaway", [&](const std::string& file, int) {
    const auto png = data::encode_png({side, side, 1, {file.end() - side * side, file.end()}});
    return std::string(png.begin(), png.end());  // the same pixels
  });
  CAPTURE(binary.saw);
  is_caught(binary);
  CHECK(binary.saw.find("the format of a file") != std::string::npos);
}

TEST_CASE("check giveaway: a word that only one class has") {
  const auto words = [](bool spam, int i, const char* word, int each) {
    return fmt::format("{} text {} of {} {}", spam && i % 20 >= each ? word : "", i % 7, i % 11,
                       i * 7919 % 100);
  };
  const check::Finding found =
      of_texts("giveaway", [&](bool spam, int i) { return words(spam, i, "[bulk]", 0); });
  CAPTURE(found.saw);
  is_caught(found);
  CHECK(found.saw.find("'bulk'") != std::string::npos);
  is_well(of_texts("giveaway", [&](bool spam, int i) { return words(spam, i, "", 0); }));
  is_well(of_texts("giveaway", [&](bool spam, int i) { return words(spam, i, "[bulk]", 10); }));
}

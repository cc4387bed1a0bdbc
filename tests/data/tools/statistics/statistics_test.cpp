#include "data/tools/statistics/statistics.h"

#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/format.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/jpeg.h"
#include "data/codecs/pictures/picture.h"
#include "data/formats/formats.h"
#include "data/formats/open_dataset.h"
#include "data/tools/statistics/perceptual_hash.h"
#include "data/tools/statistics/repeated_pictures.h"
#include "support/labelled.h"
#include "support/pictures.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

/// A picture of random waves: no two of different seeds look alike. As photographs, it has something
/// at every low frequency.
Picture waves(int height, int width, uint64_t seed) {
  RandomStream random(seed, 7);
  constexpr int count = 12;
  double amplitude[count][3], across[count], down[count], phase[count];
  for (int k = 0; k < count; ++k) {
    for (double& of_channel : amplitude[k]) of_channel = 8 + 12 * random.uniform();
    across[k] = 44 * random.uniform() - 22;
    down[k] = 44 * random.uniform() - 22;
    phase[k] = 6 * random.uniform();
  }
  Picture picture{height, width, 3, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        double value = 128;
        for (int k = 0; k < count; ++k)
          value += amplitude[k][c] * std::sin(across[k] * x / width + down[k] * y / height + phase[k]);
        picture.pixels.push_back(static_cast<uint8_t>(std::clamp(value, 0.0, 255.0)));
      }
  return picture;
}

std::string jpeg(const Picture& picture, int quality) {
  const auto bytes = encode_jpeg(picture, quality);
  return {bytes.begin(), bytes.end()};
}

std::string file_of(const Dataset& source, int64_t index) {
  const std::string name = source.name(index);
  return name.substr(name.rfind('/', name.rfind('/') - 1) + 1);
}

}  // namespace

TEST_CASE("pictures look alike after another size, another quality and more light, and no others do") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Picture picture = waves(96, 128, seed);
    const uint64_t hash = likeness(picture).hash;
    Picture again;
    CHECK(decode_picture(encode_jpeg(picture, 75), again).empty());
    CHECK(distance(hash, likeness(again).hash) <= 3);
    CHECK(distance(hash, likeness(resize(picture, 61, 77)).hash) <= 3);
    Picture lighter = picture;
    for (uint8_t& value : lighter.pixels) value = static_cast<uint8_t>(std::min(255, value + 6));
    CHECK(distance(hash, likeness(lighter).hash) <= 3);
    CHECK(distance(hash, likeness(waves(96, 128, seed + 100)).hash) > 8);
  }
}

TEST_CASE("statistics count, measure, and find what is there twice") {
  const TempFolder folder;
  for (int i = 0; i < 10; ++i) {
    put_file(folder / fmt::format("train/cat/{}.jpg", i), jpeg(waves(40, 50, static_cast<uint64_t>(i)), 95));
    put_file(folder / fmt::format("train/dog/{}.jpg", i),
             jpeg(waves(40, 40, static_cast<uint64_t>(100 + i)), 95));
    put_file(folder / fmt::format("test/cat/{}.jpg", i),
             jpeg(waves(40, 40, static_cast<uint64_t>(200 + i)), 95));
  }
  put_file(folder / "train/dog/same.jpg", jpeg(waves(40, 50, 3), 95));   // as cat/3.jpg
  put_file(folder / "test/cat/leak.jpg", jpeg(waves(80, 80, 105), 60));  // looks as dog/5.jpg
  put_file(folder / "test/cat/leak2.jpg", jpeg(waves(40, 50, 7), 70));   // looks as cat/7.jpg
  put_file(folder / "train/dog/zbad.jpg", jpeg(waves(40, 40, 9), 95).substr(0, 300));

  const std::vector<std::shared_ptr<const Dataset>> sources = {open_labelled(folder / "train"),
                                                               open_labelled(folder / "test")};
  int64_t reported = 0;
  StatisticsOptions options;
  options.progress = [&](int64_t done, int64_t total) {
    CHECK(total == 34);
    reported = std::max(reported, done);
  };
  const PictureStatistics found = picture_statistics(sources, options);
  CHECK(reported == 34);
  REQUIRE(found.sources.size() == 2);
  const auto& train = found.sources[0];
  CHECK(train.pictures == 22);
  CHECK(train.of_class == std::vector<int64_t>{10, 12});
  CHECK(train.sizes.at({40, 50, 3}) == 11);
  CHECK(train.sizes.at({40, 40, 3}) == 10);
  REQUIRE(train.bad.size() == 1);
  CHECK(train.bad[0].name.ends_with("zbad.jpg"));
  CHECK(!train.bad[0].why.empty());

  REQUIRE(found.same.size() == 1);
  CHECK(found.same[0].classes_differ);
  CHECK(!found.same[0].sources_differ);
  CHECK(file_of(*sources[0], found.same[0].places[0].index) == "cat/3.jpg");
  CHECK(file_of(*sources[0], found.same[0].places[1].index) == "dog/same.jpg");
  REQUIRE(found.alike.size() == 2);
  for (const Twins& twins : found.alike) {
    CHECK(twins.sources_differ);
    REQUIRE(twins.places.size() == 2);
    const bool dog = file_of(*sources[0], twins.places[0].index) == "dog/5.jpg";
    CHECK(twins.classes_differ == dog);
    CHECK(file_of(*sources[1], twins.places[1].index) == (dog ? "cat/leak.jpg" : "cat/leak2.jpg"));
  }

  // Mean and deviation, as simply as can be.
  double sum = 0, squares = 0, count = 0;
  for (int64_t i = 0; i < sources[1]->count(); ++i) {
    Picture picture;
    REQUIRE(decode_picture(LabelledPictures(sources[1]).picture(i), picture).empty());
    for (size_t k = 0; k < picture.pixels.size(); k += 3) {
      sum += picture.pixels[k];
      squares += picture.pixels[k] * picture.pixels[k];
      ++count;
    }
  }
  CHECK(found.sources[1].mean[0] == doctest::Approx(sum / count / 255));
  CHECK(found.sources[1].std[0] ==
        doctest::Approx(std::sqrt(squares / count - sum / count * sum / count) / 255));
  // Neither the number of threads nor a stricter distance invents anything.
  options.progress = nullptr;
  options.threads = 1;
  CHECK(picture_statistics(sources, options).alike.size() == 2);
  options.distance = 4;
  CHECK_THROWS_AS((void)picture_statistics(sources, options), InputError);
}

TEST_CASE("columns are summed up by kind") {
  const TempFolder folder;
  const auto writer =
      formats()
          .at("recordio")
          .create(folder / "x.rec",
                  {{"label", ColumnKind::real}, {"id", ColumnKind::integer}, {"data", ColumnKind::bytes}});
  for (int64_t i = 0; i < 100; ++i)
    writer->add(std::vector<Value>{static_cast<double>(i % 4) / 2, i,
                                   Bytes(std::vector<uint8_t>(static_cast<size_t>(i)))});
  writer->finish();
  const auto table = open_dataset(folder / "x.rec");
  const auto columns = column_statistics(*table);
  REQUIRE(columns.size() == 4);
  CHECK(columns[0].least == 0);
  CHECK(columns[0].most == 1.5);
  CHECK(columns[0].mean == doctest::Approx(0.75));
  CHECK(columns[0].std == doctest::Approx(std::sqrt(0.3125)));
  CHECK(columns[0].different == 4);
  CHECK(columns[0].frequent[0] == std::pair<std::string, int64_t>{"0", 25});
  CHECK(columns[1].different == 100);
  CHECK(columns[3].longest == 99);
  CHECK(columns[3].bytes == 4950);
  CHECK(columns[3].missing == 0);
}

TEST_CASE("means and deviations of the largest numbers are numbers") {
  const TempFolder folder;
  const auto of = [&](const std::vector<double>& values, int64_t times) {
    const std::string path = folder / "x.csv";
    std::string text = "n\n";
    for (int64_t i = 0; i < times; ++i)
      for (const double value : values) text += fmt::format("{}\n", value);
    put_file(path, text);
    const auto table = open_dataset(path);
    return column_statistics(*table).at(0);
  };
  for (const int64_t times : {1, 40'000}) {  // more are summed up in parts
    const auto both = of({1e308, -1e308}, times);
    CHECK(std::abs(both.mean) < 1e295);
    CHECK(both.std == doctest::Approx(1e308));
    const auto large = of({1.5, 2.5, 1.7e308, 1.7e308}, times);
    CHECK(large.mean == doctest::Approx(0.85e308));
    CHECK(large.std == doctest::Approx(0.85e308));
    CHECK(of({3, 5}, times).std == doctest::Approx(1));
  }
}

TEST_CASE("test pictures that training has are found by their bytes and by their looks, in bounded time") {
  const TempFolder folder;
  for (int i = 0; i < 40; ++i) {
    put_file(folder / fmt::format("train/{:02}.jpg", i), jpeg(waves(40, 50, static_cast<uint64_t>(i)), 95));
    put_file(folder / fmt::format("test/{:02}.jpg", i),
             jpeg(waves(40, 50, static_cast<uint64_t>(100 + i)), 95));
  }
  const auto train = open_dataset(folder / "train");
  const auto none = repeated_pictures(*train, *open_dataset(folder / "test"), "", 60);
  CHECK(none.repeated == 0);
  CHECK(none.bytes == RepeatedPictures::Looked{40, 40});
  CHECK(none.looks == RepeatedPictures::Looked{40, 40});

  put_file(folder / "test/same.jpg", jpeg(waves(40, 50, 3), 95));
  put_file(folder / "test/small.jpg", jpeg(resize(waves(40, 50, 20), 33, 41), 80));
  put_file(folder / "test/twice.jpg", jpeg(waves(40, 50, 3), 95));
  put_file(folder / "test/zbad.jpg", "no picture");
  const auto test = open_dataset(folder / "test");
  const auto found = repeated_pictures(*train, *test, "image", 60);
  CHECK(found.repeated == 3);
  CHECK(found.bytes == RepeatedPictures::Looked{44, 40});
  CHECK(found.looks == RepeatedPictures::Looked{43, 40});
  CHECK(found.train == (folder / "train/03.jpg").string());
  CHECK((found.test == (folder / "test/same.jpg").string() ||
         found.test == (folder / "test/twice.jpg").string()));

  const auto hurried = repeated_pictures(*train, *test, "", 0);
  CHECK(hurried.repeated == 0);
  CHECK(hurried.looks == RepeatedPictures::Looked{});
}

#include "train/datasets.h"

#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/program.h>

#include "base/file.h"
#include "base/format.h"
#include "data/codecs/pictures/extent.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/frame_graph.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/codecs/pictures/stored_picture.h"
#include "support/labelled.h"
#include "support/pictures.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::train;

namespace {

/// A grey picture of one value as a PGM file.
void write_picture(const std::filesystem::path& path, int value, int side = 4) {
  write_file(path, fmt::format("P5 {0} {0} 255\n", side) +
                       std::string(static_cast<size_t>(side * side), static_cast<char>(value)));
}

}  // namespace

TEST_CASE("normalisation is measured over the channel's pixels") {
  testing::TempFolder folder;
  write_picture(folder / "t/a/0.pgm", 0);
  write_picture(folder / "t/a/1.pgm", 51);
  write_picture(folder / "t/b/0.pgm", 102);
  write_picture(folder / "t/b/1.pgm", 255);
  const PictureSample sample = sample_pictures(Recipe(), testing::open_labelled((folder / "t").string()));
  CHECK(sample.pictures.type() == Type{u8, {4, 1, 4, 4}});
  REQUIRE(sample.mean.size() == 1);
  CHECK(sample.mean[0] == doctest::Approx(102.0 / 255));
  CHECK(sample.std[0] == doctest::Approx(95.4123 / 255).epsilon(1e-4));

  write_picture(folder / "c/a/0.pgm", 7);
  CHECK(sample_pictures(Recipe(), testing::open_labelled((folder / "c").string())).std[0] == 1);
}

TEST_CASE("a test set's classes are matched by name, unknown ones and other sizes refused") {
  testing::TempFolder folder;
  for (const char* name : {"b", "c"}) write_picture(folder / fmt::format("t/{}/0.pgm", name), 10);
  const std::vector<std::string> classes = {"a", "b", "c"};
  const data::Extent extent{1, 4, 4};
  const TestSet set = open_test_set((folder / "t").string(), Recipe(), classes, extent, nullptr);
  CHECK(set.labels == std::vector<int64_t>{1, 2});
  CHECK(set.loader->batch_size() == 2);
  CHECK_THROWS_WITH_AS(open_test_set((folder / "t").string(), Recipe(), {"a", "b"}, extent, nullptr),
                       doctest::Contains("class 'c'"), InputError);
  CHECK_THROWS_WITH_AS(open_test_set((folder / "t").string(), Recipe(), classes, {1, 8, 8}, nullptr),
                       doctest::Contains("the model takes 8×8"), InputError);
}

TEST_CASE("training without random changes, evaluation and prediction see the same bytes of a picture") {
  testing::TempFolder folder;
  for (int i = 0; i < 4; ++i)
    testing::put_file(folder / ("t/a/" + std::to_string(i) + ".jpg"),
                      testing::make_jpeg(50 + 9 * i, 77 - 5 * i, 3, 3 * i));
  Recipe cropped, squares, random;
  cropped.data.resize = 40;
  cropped.data.crop = 32;
  squares.data.resize = 32;
  random.data.augment = {"random-resized-crop 32", "flip"};
  for (Recipe* recipe : {&cropped, &squares, &random}) {
    recipe->train.batch = recipe->eval.batch = 4;
    const auto source = [&] { return testing::open_labelled((folder / "t").string()); };
    const data::Extent extent{3, 32, 32};
    TestSet set = open_test_set(source(), *recipe, source()->classes(), extent, nullptr);
    const data::Batch batch = set.loader->next();
    for (int i = 0; i < 4; ++i) {
      const Array one =
          load_prepared((folder / ("t/a/" + std::to_string(i) + ".jpg")).string(), *recipe, extent);
      CHECK(std::equal(one.as<uint8_t>().begin(), one.as<uint8_t>().end(),
                       batch.pictures.begin() + i * 3 * 32 * 32));
      // The decoded picture, prepared by a graph.
      const data::StoredPicture stored = source()->picture(i);
      data::PictureReader reader;
      REQUIRE(reader.open(stored).empty());
      const int height = reader.height(), width = reader.width();
      Array decoded(u8, {1, 3, height, width});
      REQUIRE(
          reader.load(data::whole_frame(height, width, height, width), 3, false, decoded.as<uint8_t>().data())
              .empty());
      Graph graph;
      const Value pictures = graph.input("pictures", decoded.type());
      graph.set_outputs(
          {data::frame_pictures(graph, pictures, prepared_frame(*recipe, extent, height, width))});
      for (const char* target : {"ref", "cpu"}) {
        Program program = Program::compile(graph, {.target = target});
        program.input(0) = decoded;
        program.run();
        const auto prepared = program.output(0).as<const uint8_t>();
        CHECK(std::equal(prepared.begin(), prepared.end(), one.as<const uint8_t>().begin(),
                         one.as<const uint8_t>().end()));
      }
    }
    const PictureSample sample = sample_pictures(*recipe, source());
    CHECK(sample.pictures.type() == Type{u8, {4, 3, 32, 32}});
    const auto training = training_loader(*recipe, {source(), {}}, nullptr);
    CHECK(training->extent().bytes() == extent.bytes());
    const data::Batch& seen = training->next();
    for (int i = 0; i < 4 && recipe != &random; ++i)
      CHECK(std::equal(seen.pictures.begin() + i * 3 * 32 * 32, seen.pictures.begin() + (i + 1) * 3 * 32 * 32,
                       batch.pictures.begin() + seen.indices[i] * 3 * 32 * 32));
  }
}

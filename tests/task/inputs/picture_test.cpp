#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include <millrace/program.h>

#include "base/file.h"
#include "data/codecs/pictures/frame_graph.h"
#include "data/codecs/pictures/png.h"
#include "data/feed/picture_part.h"
#include "learnt_input.h"
#include "support/datasets.h"
#include "support/pictures.h"
#include "support/rows_dataset.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::testing;

namespace {

using Strings = std::vector<std::string>;

data::Value pixels_value(const data::Picture& picture) {
  return data::Pixels{picture.height, picture.width, picture.channels, data::Bytes(picture.pixels)};
}

std::shared_ptr<const data::Dataset> pictures_of(int count, int height, int width, int channels = 3) {
  std::vector<std::vector<data::Value>> rows;
  for (int i = 0; i < count; ++i)
    rows.push_back({pixels_value(make_picture(height, width, channels, static_cast<uint64_t>(i + 1)))});
  return std::make_shared<RowsDataset>(
      "pictures", std::vector<data::Column>{{"image", data::ColumnKind::picture}}, std::move(rows));
}

std::unique_ptr<task::Input> learnt_pictures(
    const std::shared_ptr<const data::Dataset>& samples,
    const std::vector<std::pair<std::string, SettingValue>>& settings = {}) {
  const task::Recipe recipe;
  return task::input_kinds().at("picture").learn(settled_input("picture", settings),
                                                 reading_of(recipe, samples));
}

}  // namespace

TEST_CASE("pictures are normalised by what was measured on them, and the encoding is all that it needs") {
  const auto samples = pictures_of(20, 6, 8);
  const task::Recipe recipe;
  const auto input = learnt_pictures(samples);
  const auto loaded = task::input_kinds().at("picture").load(settled_input("picture"), input->encoding());
  CHECK(loaded->encoding() == input->encoding());
  CHECK(loaded->fields()[0].type == Type{u8, {Dim::named("batch"), 3, 6, 8}});
  nn::ModelOptions options;
  loaded->describe(options);
  CHECK(options.input == Shape{3, 6, 8});

  const auto raw = rows_of(*loaded->part(reading_of(recipe, samples), task::Purpose::evaluation), *samples);
  const Array given = graph_of(*loaded, raw, false)[0];
  CHECK(given.shape() == Shape{20, 3, 6, 8});
  for (size_t c = 0; c < 3; ++c) {
    double sum = 0, squares = 0;
    for (size_t n = 0; n < 20; ++n)
      for (size_t i = 0; i < 48; ++i) {
        const double value = given.as<float>()[(n * 3 + c) * 48 + i];
        sum += value, squares += value * value;
      }
    CHECK(std::abs(sum / 960) < 1e-5);
    CHECK(std::abs(squares / 960 - 1) < 1e-5);
  }
  // What is given is taken: as nn::Normalise has it.
  const auto fixed = learnt_pictures(
      samples, {{"mean", std::vector<double>{0.5, 0.4, 0.3}}, {"std", std::vector<double>{0.25, 0.5, 1.0}}});
  const float first = graph_of(*fixed, raw, false)[0].as<float>()[48];
  CHECK(first == doctest::Approx((raw[0].as<uint8_t>()[48] / 255.0 - 0.4) / 0.5));
  CHECK(refusal([&] {
          (void)learnt_pictures(samples, {{"mean", 0.5}, {"std", 0.5}});
        }) == "input.mean has 1 numbers, the pictures have 3 channels");
  CHECK(input->fitting(reading_of(recipe, samples))->shape() == Shape{20, 3, 6, 8});
  CHECK(values_of<uint8_t>(*input->fitting(reading_of(recipe, samples))) == values_of<uint8_t>(raw[0]));

  Array one(u8, {1, 3, 6, 8});
  std::copy_n(raw[0].as<uint8_t>().begin(), 144, one.as<uint8_t>().begin());
  CHECK(values_of<uint8_t>(*input->picture(std::vector<Array>{one})) == values_of<uint8_t>(one));
  CHECK(input->text(std::vector<Array>{one}) == "8x6 colour");
}

TEST_CASE("only training changes pictures; with random frames evaluation looks at the middle") {
  const auto samples = pictures_of(5, 40, 56);
  const task::Recipe recipe;
  const auto input = learnt_pictures(
      samples, {{"augment", Strings{"random-resized-crop 16", "flip"}}, {"mix", Strings{"mixup 0.2"}}});
  const auto training = input->part(reading_of(recipe, samples), task::Purpose::training);
  CHECK(training->mixes());
  CHECK(!training->keeps());
  const auto evaluation = input->part(reading_of(recipe, samples), task::Purpose::evaluation);
  CHECK(!evaluation->mixes());
  CHECK(evaluation->keeps());
  CHECK(input->fields()[0].type.shape == Shape{Dim::named("batch"), 3, 16, 16});
  const auto seen = values_of<uint8_t>(rows_of(*evaluation, *samples)[0]);
  data::PictureOptions middle;
  middle.resize = middle.crop = 16;
  CHECK(seen == values_of<uint8_t>(rows_of(*data::picture_part(*samples, middle), *samples)[0]));
  CHECK(values_of<uint8_t>(rows_of(*training, *samples)[0]) != seen);
  CHECK(values_of<uint8_t>(rows_of(*training, *samples, 0)[0]) !=
        values_of<uint8_t>(rows_of(*training, *samples, 1)[0]));
  const auto frame = input->frame(40, 56);
  REQUIRE(frame);
  CHECK(frame->height == 16);
  CHECK(frame->keep == data::Box{0, 3, 16, 16});

  const auto other = pictures_of(3, 20, 20);
  const auto plain = learnt_pictures(samples);
  CHECK(refusal([&] { (void)plain->part(reading_of(recipe, other), task::Purpose::evaluation); }) ==
        "pictures has pictures of 20×20 with 3 channels, the model takes 56×40 with 3");
}

TEST_CASE("pictures to be predicted are brought to the model's size, bad ones are told one by one") {
  const TempFolder folder;
  write_file(folder / "small.png", data::encode_png(make_picture(9, 7, 1, 3)));
  write_file(folder / "large.png", data::encode_png(make_picture(30, 50, 3, 4)));
  write_file(folder / "bad.png", "\x89PNG, but not more");
  const task::Recipe recipe;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  const auto input = learnt_pictures(pictures_of(4, 12, 16));
  CHECK(input->together(path("small.png")));
  CHECK(input->together("photo.JPG"));
  CHECK(!input->together(folder.path().string()));
  const auto samples = input->open(recipe, {path("bad.png"), path("small.png"), path("large.png")});
  REQUIRE(samples->count() == 3);
  const auto part = input->part(reading_of(recipe, samples), task::Purpose::prediction);
  std::vector<std::byte> planes(part->stored_bytes());
  CHECK(planes.size() == 3 * 12 * 16);
  const auto scratch = part->scratch();
  CHECK(!part->read(*samples, 0, nullptr, scratch.get(), planes.data()).empty());
  for (const int i : {1, 2}) {
    CHECK(part->read(*samples, i, nullptr, scratch.get(), planes.data()).empty());
    const data::Picture own = i == 1 ? make_picture(9, 7, 1, 3) : make_picture(30, 50, 3, 4);
    std::vector<uint8_t> wanted(planes.size());
    to_planes(data::resize(data::with_channels(own, 3), 12, 16), wanted.data());
    CHECK(std::equal(wanted.begin(), wanted.end(), reinterpret_cast<const uint8_t*>(planes.data())));
  }
  // A crop says which part is looked at; what is smaller is bad.
  const auto cropped = learnt_pictures(pictures_of(4, 12, 16), {{"crop", int64_t{10}}});
  const auto cropping = cropped->part(reading_of(recipe, samples), task::Purpose::prediction);
  const auto its = cropping->scratch();
  std::vector<std::byte> square(cropping->stored_bytes());
  CHECK(cropping->read(*samples, 1, nullptr, its.get(), square.data()).find("7x9 is smaller") !=
        std::string::npos);
  CHECK(cropping->read(*samples, 2, nullptr, its.get(), square.data()).empty());
  CHECK(static_cast<uint8_t>(square[0]) == make_picture(30, 50, 3, 4).pixels[3 * (10 * 50 + 20)]);
}

TEST_CASE("the graph that an exported model frames pictures by gives the bytes that the host gives") {
  const task::Recipe recipe;
  for (const auto& settings : std::vector<std::vector<std::pair<std::string, SettingValue>>>{
           {{"resize", int64_t{40}}, {"crop", int64_t{32}}},
           {{"resize", int64_t{32}}},
           {{"augment", Strings{"random-resized-crop 32", "flip"}}}}) {
    const auto input = learnt_pictures(pictures_of(3, 32, 32), settings);
    for (const auto& [height, width] : {std::pair{50, 77}, std::pair{91, 41}}) {
      CAPTURE(height);
      const auto samples = pictures_of(1, height, width);
      const auto host =
          rows_of(*input->part(reading_of(recipe, samples), task::Purpose::prediction), *samples)[0];
      Array decoded(u8, {1, 3, height, width});
      to_planes(make_picture(height, width, 3, 1), decoded.as<uint8_t>().data());
      const auto frame = input->frame(height, width);
      REQUIRE(frame);
      Graph graph;
      graph.set_outputs({data::frame_pictures(graph, graph.input("pictures", decoded.type()), *frame)});
      for (const char* target : {"ref", "cpu"}) {
        Program program = Program::compile(graph, {.target = target});
        program.input(0) = decoded;
        program.run();
        CHECK(values_of<uint8_t>(program.output(0)) == values_of<uint8_t>(host));
      }
    }
  }
}

TEST_CASE("test-time augmentation looks at mirror images, and at pictures shifted by a pixel half as much") {
  const auto samples = pictures_of(2, 3, 3, 1);
  CHECK(learnt_pictures(samples)->views() == 1);
  CHECK(learnt_pictures(samples, {{"tta", std::string("flip")}})->views() == 2);
  const auto input = learnt_pictures(samples, {{"tta", std::string("shift")}});
  REQUIRE(input->views() == 6);
  Array picture(u8, {1, 1, 3, 3});
  for (uint8_t i = 0; i < 9; ++i) picture.as<uint8_t>()[i] = static_cast<uint8_t>(i + 1);
  using Pixels = std::vector<uint8_t>;
  const Pixels views[] = {{1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 2, 1, 6, 5, 4, 9, 8, 7},
                          {5, 4, 5, 2, 1, 2, 5, 4, 5}, {5, 4, 5, 2, 1, 2, 5, 4, 5},
                          {5, 6, 5, 8, 9, 8, 5, 6, 5}, {5, 6, 5, 8, 9, 8, 5, 6, 5}};
  for (int view = 0; view < 6; ++view) {
    CHECK(values_of<uint8_t>(input->view(std::vector<Array>{picture}, view)[0]) ==
          views[static_cast<size_t>(view)]);
    CHECK(input->view_weight(view) == (view < 2 ? 1.0f : 0.5f));
  }
  Array asymmetric(u8, {1, 1, 1, 4});
  for (uint8_t i = 0; i < 4; ++i) asymmetric.as<uint8_t>()[i] = i;
  CHECK(values_of<uint8_t>(input->view(std::vector<Array>{asymmetric}, 2)[0]) == Pixels{1, 0, 1, 2});
  CHECK(values_of<uint8_t>(input->view(std::vector<Array>{asymmetric}, 3)[0]) == Pixels{2, 1, 0, 1});
  CHECK(values_of<uint8_t>(input->view(std::vector<Array>{asymmetric}, 4)[0]) == Pixels{1, 2, 3, 2});
}

TEST_CASE("what a recipe says of pictures is checked, and columns of them are found") {
  const auto& kind = task::input_kinds().at("picture");
  const task::Recipe recipe;
  const auto wrong = [&](const std::vector<std::pair<std::string, SettingValue>>& settings) {
    return refusal([&] { kind.check(settled_input("picture", settings), recipe); });
  };
  CHECK(wrong({}).empty());
  CHECK(wrong({{"mean", 0.5}}) == "input.mean and input.std need one number a channel each");
  CHECK(wrong({{"channels", int64_t{2}}}) == "input.channels = 2: wanted is 1 (grey) or 3 (colour)");
  CHECK(wrong({{"resize", int64_t{8}}, {"crop", int64_t{9}}})
            .starts_with("input.crop = 9 is larger than input.resize"));
  CHECK(wrong({{"augment", Strings{"flipp"}}}).starts_with("input.augment: "));
  const auto samples = pictures_of(3, 12, 12);
  CHECK(kind.recognise(*samples, {}) == Strings{"image"});
  CHECK(kind.recognise(*samples, {"image"}).empty());
  CHECK(kind.draft(*samples, {"image"}).starts_with("augment = [\"pad-crop 1\"]"));
  CHECK(kind.draft(*pictures_of(3, 300, 400), {"image"}).find("crop = 224") != std::string::npos);
  CHECK(refusal([&] { (void)kind.load(settled_input("picture"), "{\"channels\": 3}"); }).find("damaged") !=
        std::string::npos);
  CHECK(learnt_pictures(samples)->architectures().front() == "convnet");
  // Training's pictures are as large as needed: nothing to store otherwise.
  CHECK(learnt_pictures(samples, {{"resize", int64_t{12}}})->cheaper(*samples).how.empty());
  CHECK(learnt_pictures(pictures_of(3, 400, 400), {{"resize", int64_t{32}}})
            ->cheaper(*pictures_of(3, 400, 400))
            .how == "millrace pack --resize 32");
}

TEST_CASE("which of two columns of pictures is meant must be said, unless no sample has both") {
  const data::Value dark = pixels_value(make_picture(6, 8, 3, 1)),
                    light = pixels_value(make_picture(6, 8, 3, 2));
  const auto named = [](const Strings& names, std::vector<std::vector<data::Value>> rows) {
    std::vector<data::Column> columns;
    for (const std::string& name : names) columns.push_back({name, data::ColumnKind::picture});
    return std::make_shared<RowsDataset>("pictures", columns, std::move(rows));
  };
  const auto both = named({"small", "photo"}, {{dark, light}, {dark, light}}),
             either = named({"jpg", "png"}, {{dark, {}}, {{}, light}}),
             one = named({"photo"}, {{light}, {light}});
  CHECK_THROWS_WITH_AS(learnt_pictures(both), doctest::Contains("Set input.column to one of small, photo"),
                       InputError);
  CHECK(learnt_pictures(either)->settings().text("column").empty());
  CHECK(learnt_pictures(both, {{"column", std::string("photo")}})->settings().text("column") == "photo");
  // What another input or output takes is none of its own.
  const task::Recipe recipe;
  task::Reading others = reading_of(recipe, both);
  others.taken = {"small"};
  CHECK(
      task::input_kinds().at("picture").learn(settled_input("picture"), others)->settings().text("column") ==
      "photo");
  others.taken = {"small", "photo"};
  CHECK_THROWS_WITH_AS(task::input_kinds().at("picture").learn(settled_input("picture"), others),
                       doctest::Contains("taken by other inputs or outputs"), InputError);
  // Other data are read in the column that training had, also by a model from a checkpoint.
  const auto trained = learnt_pictures(one);
  const auto loaded = task::input_kinds().at("picture").load(settled_input("picture"), trained->encoding());
  const auto first_of = [&](const task::Input& input, const std::shared_ptr<const data::Dataset>& samples) {
    return rows_of(*input.part(reading_of(recipe, samples), task::Purpose::prediction), *samples)[0];
  };
  CHECK(first_of(*loaded, both).identical(first_of(*loaded, one)));
  const auto foreign = named({"a", "b"}, {{dark, light}, {dark, light}});
  CHECK_THROWS_WITH_AS(first_of(*loaded, foreign), doctest::Contains("a or b? They were in a column 'photo'"),
                       InputError);
}

#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/nn.h>

#include "nn/models/architecture.h"

using namespace millrace;

namespace {

/// A picture of 2 planes of 8 x 12: two rows of three patches 4 x 4.
Array picture_of_patches() {
  Array picture(f32, {1, 2, 8, 12});
  for (int64_t i = 0; i < picture.count(); ++i) picture.set(i, std::sin(0.7 * static_cast<double>(i)));
  return picture;
}

void swap_values(Array& of, int64_t a, int64_t b) {
  const double kept = of.at(a);
  of.set(a, of.at(b));
  of.set(b, kept);
}

/// The first patch in the place of the last, and the other way.
void swap_first_and_last(Array& picture) {
  for (int64_t c = 0; c < 2; ++c)
    for (int64_t y = 0; y < 4; ++y)
      for (int64_t x = 0; x < 4; ++x)
        swap_values(picture, (c * 8 + y) * 12 + x, (c * 8 + y + 4) * 12 + x + 8);
}

}  // namespace

TEST_CASE("a vision transformer takes patches as a set, and tells them apart by their positions alone") {
  const nn::Model model =
      nn::make_model("vit", {.classes = 3, .input = {2, 8, 12}, .width = 8, .depth = 2, .heads = 2});
  model.module->initialise(5);
  model.module->eval();
  Tensor& positions = *model.module->find("pos");
  REQUIRE(positions.shape() == Shape{6, 8});
  Array table = positions.to_array();
  nn::init::normal(0, 1)(table, 1, "pos");  // large ones, which show
  positions = Tensor(table);
  const auto logits = [&](const Array& of) { return (*model.module)(Tensor(of)).to_array().to_doubles(); };

  Array picture = picture_of_patches();
  const std::vector<double> before = logits(picture);
  swap_first_and_last(picture);
  const std::vector<double> swapped = logits(picture);
  for (int64_t i = 0; i < 8; ++i) swap_values(table, i, 5 * 8 + i);
  positions = Tensor(table);
  const std::vector<double> both = logits(picture);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(both[i] == doctest::Approx(before[i]).epsilon(1e-4));
    CHECK(std::abs(swapped[i] - before[i]) > 1e-3);
  }
}

TEST_CASE("patches of a vision transformer fit the picture") {
  const auto positions = [](const Shape& picture, int64_t patch) {
    const nn::Architecture& vit = nn::architectures().at("vit");
    Settings settings(vit.settings);
    settings.set("patch", patch);
    return vit.make("vit", settings, {.input = picture}).module->find("pos")->shape()[0].size();
  };
  CHECK(positions({3, 32, 32}, 0) == 64);
  CHECK(positions({1, 28, 28}, 7) == 16);
  CHECK(positions({3, 224, 224}, 0) == 196);
  CHECK_THROWS_WITH_AS(positions({3, 30, 30}, 0),
                       "pictures of 30 x 30 cannot be cut into patches of 4 x 4; model.patch can be 2, 3, 5, "
                       "6, 10, 15, 30",
                       InputError);
  CHECK_THROWS_WITH_AS(positions({3, 31, 30}, 4), doctest::Contains("give input.size another value"),
                       InputError);
  CHECK_THROWS_AS(nn::make_model("vit", {.width = 10, .heads = 4}), InputError);
}

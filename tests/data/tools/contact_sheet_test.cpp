#include "data/tools/contact_sheet.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

#include "support/temp_folder.h"

using namespace millrace;
using data::Picture;
using testing::TempFolder;

namespace {

/// A pixel's first channel.
int sheet_pixel(const Picture& picture, int y, int x) {
  return picture.pixels[static_cast<size_t>((y * picture.width + x) * picture.channels)];
}

}  // namespace

TEST_CASE("planes become pixels") {
  Array planes(u8, {3, 1, 2});
  for (int64_t i = 0; i < 6; ++i) planes.set_int(i, 10 * i);
  const Picture picture = data::picture_of(planes);
  CHECK(picture == Picture{1, 2, 3, {0, 20, 40, 10, 30, 50}});
  CHECK_THROWS_WITH_AS(data::picture_of(Array(f32, {1, 2, 2})), doctest::Contains("u8 [channels"),
                       InputError);
}

TEST_CASE("tiles stand in rows, small ones enlarged, and no label is drawn without a typeface") {
  const TempFolder empty;
  // 2×1 pixels: 48 times as large, since the longer side wants 96.
  const std::vector<data::Tile> tiles = {{Picture{2, 1, 1, {10, 20}}, "a"},
                                         {Picture{2, 1, 1, {30, 40}}, "b"},
                                         {Picture{2, 1, 1, {50, 60}}, "c"}};
  const data::ContactSheet sheet = data::contact_sheet(tiles, 2, empty.path());
  CHECK_FALSE(sheet.labelled);
  CHECK(sheet.picture.height == 2 * 96 + 2);
  CHECK(sheet.picture.width == 2 * 48 + 2);
  CHECK(sheet.picture.channels == 1);
  CHECK(sheet_pixel(sheet.picture, 47, 47) == 10);
  CHECK(sheet_pixel(sheet.picture, 48, 47) == 20);
  CHECK(sheet_pixel(sheet.picture, 0, 48) == 255);  // the gap
  CHECK(sheet_pixel(sheet.picture, 0, 50) == 30);
  CHECK(sheet_pixel(sheet.picture, 98, 0) == 50);
  CHECK(sheet_pixel(sheet.picture, 98, 50) == 255);  // no fourth tile
}

TEST_CASE("labels are drawn below their pictures and within their cells") {
  const std::vector<data::Tile> tiles = {{Picture{96, 96, 3, std::vector<uint8_t>(96 * 96 * 3, 200)},
                                          "a label that is much too long for its cell"},
                                         {Picture{96, 96, 1, std::vector<uint8_t>(96 * 96, 100)}, ""}};
  const data::ContactSheet sheet = data::contact_sheet(tiles, 2);
  CHECK(sheet.picture.channels == 3);
  CHECK(sheet_pixel(sheet.picture, 95, 95) == 200);
  CHECK(sheet_pixel(sheet.picture, 0, 98) == 100);
  if (!sheet.labelled) return;  // a machine without fonts
  int ink = 0;
  for (int y = 96; y < sheet.picture.height; ++y)
    for (int x = 0; x < 96; ++x) ink += sheet_pixel(sheet.picture, y, x) < 128;
  CHECK(ink > 30);
  for (int y = 96; y < sheet.picture.height; ++y)
    for (int x = 98; x < sheet.picture.width; ++x) REQUIRE(sheet_pixel(sheet.picture, y, x) == 255);
}

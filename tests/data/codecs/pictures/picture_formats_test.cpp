#include <cstring>
#include <doctest/doctest.h>
#include <string>

#include <millrace/random.h>

#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/picture.h"

using namespace millrace;
using namespace millrace::data;

namespace {

struct PictureFile {
  std::string name;
  int height, width, channels;
  std::string file, pixels;  // in hexadecimal
};

const std::vector<PictureFile>& stored() {
  static const std::vector<PictureFile> list = {
#include "data/codecs/pictures/picture_values.inc"
  };
  return list;
}

std::vector<uint8_t> bytes_of(const std::string& hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

}  // namespace

TEST_CASE("PNG, WebP, GIF and BMP files have the pixels that Pillow finds in them") {
  for (const PictureFile& wanted : stored()) {
    CAPTURE(wanted.name);
    CAPTURE(wanted.file.substr(0, 16));
    Picture picture;
    REQUIRE(decode_picture(bytes_of(wanted.file), picture) == "");
    CHECK(picture.height == wanted.height);
    CHECK(picture.width == wanted.width);
    CHECK(picture.channels == wanted.channels);
    CHECK(picture.pixels == bytes_of(wanted.pixels));
  }
}

TEST_CASE("picture files cut anywhere give a reason or whole pixels, never a crash; most are refused") {
  int refused = 0, all = 0;
  for (const PictureFile& whole : stored()) {
    const auto bytes = bytes_of(whole.file);
    for (size_t size = 0; size < bytes.size(); ++size) {
      Picture picture;
      const std::string why = decode_picture(std::span(bytes).first(size), picture);
      ++all;
      refused += !why.empty();
      if (why.empty()) CHECK(picture.pixels.size() == size_t(whole.height) * whole.width * picture.channels);
    }
  }
  CHECK(refused > all * 0.95);
}

TEST_CASE("damaged picture files never crash the decoders") {
  RandomStream random(4, 0);
  for (const PictureFile& whole : stored()) {
    const auto good = bytes_of(whole.file);
    for (int round = 0; round < 300; ++round) {
      auto bytes = good;
      for (uint32_t i = 0; i <= random.below(4); ++i)
        bytes[random.below(static_cast<uint32_t>(bytes.size()))] = static_cast<uint8_t>(random.next());
      Picture picture;
      if (decode_picture(bytes, picture).empty())
        CHECK(picture.pixels.size() == size_t(picture.height) * picture.width * picture.channels);
    }
  }
}

TEST_CASE("pictures that claim to be huge are refused before memory is taken") {
  // Sizes of 65,535 x 65,535 in the headers of each format.
  for (const PictureFile& whole : stored()) {
    auto bytes = bytes_of(whole.file);
    std::vector<size_t> places;
    if (bytes[0] == 0x89) continue;  // its header has a checksum; libpng's own limit is below
    if (bytes[0] == 'G') places = {6, 7, 8, 9};
    if (bytes[0] == 'B') places = {18, 19, 22, 23};
    for (const size_t place : places) bytes[place] = 0xff;
    Picture picture;
    if (!places.empty()) CHECK(decode_picture(bytes, picture) != "");
  }
}

TEST_CASE("a BMP with a negative height begins with its upper row") {
  // 1 pixel wide, 2 high, 24 bits: each row has a pixel and a byte of padding.
  std::vector<uint8_t> bytes(54 + 8);
  bytes[0] = 'B', bytes[1] = 'M', bytes[10] = 54, bytes[14] = 40, bytes[18] = 1, bytes[26] = 1,
  bytes[28] = 24;
  bytes[54] = 3, bytes[55] = 2, bytes[56] = 1, bytes[58] = 6, bytes[59] = 5, bytes[60] = 4;
  const std::vector<uint8_t> first = {1, 2, 3, 4, 5, 6}, last = {4, 5, 6, 1, 2, 3};
  for (const int32_t height : {-2, 2}) {
    std::memcpy(&bytes[22], &height, sizeof height);
    Picture picture;
    REQUIRE(decode_picture(bytes, picture) == "");
    CHECK(picture.height == 2);
    CHECK(picture.pixels == (height < 0 ? first : last));
  }
}

TEST_CASE("file names of all formats are known") {
  for (const char* name : {"a.png", "b.WEBP", "c.gif", "d.Bmp", "e.jpeg", "f.pgm"})
    CHECK(is_picture_name(name));
  for (const char* name : {"a.txt", "png", "b.png.cls", ""}) CHECK(!is_picture_name(name));
}

#include "data/codecs/pictures/picture_reader.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/jpeg.h"
#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/picture_size.h"
#include "data/codecs/pictures/stored_picture.h"
#include "support/jpeg_kinds.h"
#include "support/pictures.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

std::vector<JpegKind> kinds() {
  std::vector<JpegKind> list = {{.channels = 1, .across = 1, .down = 1}};
  for (const int across : {1, 2, 4})
    for (const int down : {1, 2}) list.push_back({.across = across, .down = down});
  list.push_back({.progressive = true});
  list.push_back({.across = 1, .down = 1, .progressive = true});
  list.push_back({.restart = 1});
  return list;
}

/// The frame of an encoded picture as planes; a good picture is expected.
std::vector<uint8_t> load(PictureReader& reader, std::span<const uint8_t> bytes, const Frame& frame,
                          int channels, bool reduce = false) {
  StoredPicture sample;
  sample.bytes = bytes;
  REQUIRE(reader.open(sample) == "");
  std::vector<uint8_t> planes(size_t(channels) * frame.keep.height * frame.keep.width, 77);
  REQUIRE(reader.load(frame, channels, reduce, planes.data()) == "");
  return planes;
}

/// The same the long way: decode all, cut, resize, cut.
std::vector<uint8_t> slowly(const Picture& whole, const Frame& frame) {
  const auto cut = [](const Picture& picture, const Box& box) {
    Picture out{box.height, box.width, picture.channels, {}};
    for (int y = box.top; y < box.top + box.height; ++y) {
      const uint8_t* row = &picture.pixels[(size_t(y) * picture.width + box.left) * picture.channels];
      out.pixels.insert(out.pixels.end(), row, row + size_t(box.width) * picture.channels);
    }
    return out;
  };
  const Picture result = cut(resize(cut(whole, frame.part), frame.height, frame.width), frame.keep);
  std::vector<uint8_t> planes(result.pixels.size());
  to_planes(result, planes.data());
  return planes;
}

Box random_box(RandomStream& random, int height, int width) {
  const int h = 1 + static_cast<int>(random.below(height)), w = 1 + static_cast<int>(random.below(width));
  return {static_cast<int>(random.below(height - h + 1)), static_cast<int>(random.below(width - w + 1)), h,
          w};
}

/// A JPEG file whose EXIF states an orientation.
std::vector<uint8_t> with_orientation(std::vector<uint8_t> jpeg, int orientation) {
  std::vector<uint8_t> exif = {0xff, 0xe1, 0,    34, 'E', 'x', 'i', 'f', 0, 0, 'I', 'I', '*', 0, 8, 0, 0, 0,
                               1,    0,    0x12, 1,  3,   0,   1,   0,   0, 0, 0,   0,   0,   0, 0, 0, 0, 0};
  exif[28] = static_cast<uint8_t>(orientation);
  jpeg.insert(jpeg.begin() + 2, exif.begin(), exif.end());
  return jpeg;
}

}  // namespace

TEST_CASE("frames of turned JPEGs are those of the upright picture, which is decoded and then turned") {
  RandomStream random(10, 0);
  PictureReader reader;
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const int channels : {1, 3}) {
      const auto bytes = with_orientation(make_jpeg_of(make_rough_picture(61, 90, channels, 5),
                                                       {.channels = channels, .across = 1, .down = 1}),
                                          orientation);
      Picture whole;
      REQUIRE(decode_picture(bytes, whole) == "");
      CHECK(picture_size(bytes)->width == whole.width);
      CHECK(picture_size(bytes)->height == whole.height);
      CHECK((whole.width == 61) == (orientation >= 5));
      for (int round = 0; round < 20; ++round) {
        Frame frame;
        frame.part = random_box(random, whole.height, whole.width);
        frame.height = 1 + static_cast<int>(random.below(40));
        frame.width = 1 + static_cast<int>(random.below(40));
        frame.keep = random_box(random, frame.height, frame.width);
        CHECK(load(reader, bytes, frame, channels) == slowly(whole, frame));
      }
      const Frame all = whole_frame(whole.height, whole.width, whole.height, whole.width);
      CHECK(load(reader, bytes, all, channels) == slowly(whole, all));
    }
}

TEST_CASE("turned JPEGs that are decoded smaller have their pixels in place") {
  // 8 does not divide the sides, and a pixel's place is its value.
  Picture ramp{203, 301, 3, {}};
  for (int y = 0; y < ramp.height; ++y)
    for (int x = 0; x < ramp.width; ++x)
      ramp.pixels.insert(ramp.pixels.end(),
                         {static_cast<uint8_t>(x * 255 / 301), static_cast<uint8_t>(y), 99});
  PictureReader reader;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto bytes = with_orientation(encode_jpeg(ramp, 98), orientation);
    Picture whole;
    REQUIRE(decode_picture(bytes, whole) == "");
    Frame frame = whole_frame(whole.height, whole.width, 20, 20);
    frame.part = {9, 3, whole.height - 11, whole.width - 5};
    const auto fast = load(reader, bytes, frame, 3, true), exact = load(reader, bytes, frame, 3, false);
    int most = 0;
    for (size_t i = 0; i < exact.size(); ++i) most = std::max(most, std::abs(exact[i] - fast[i]));
    CAPTURE(orientation);
    CHECK(most <= 2);
  }
}

TEST_CASE("a region of a JPEG has the very pixels of a whole decode, for all kinds of files") {
  RandomStream random(9, 0);
  JpegReader reader;
  for (const JpegKind& kind : kinds())
    for (const auto& [height, width] : {std::pair{1, 1}, {67, 131}, {160, 96}}) {
      const auto bytes = make_jpeg_of(make_rough_picture(height, width, kind.channels, 3), kind);
      Picture whole;
      REQUIRE(decode_jpeg(bytes, whole) == "");
      for (int round = 0; round < 60; ++round) {
        const Box box = random_box(random, height, width);
        REQUIRE(reader.open(bytes) == "");
        REQUIRE(reader.read(box, 1, kind.channels) == "");
        int different = 0;
        for (int y = 0; y < box.height; ++y) {
          const uint8_t* row = &whole.pixels[(size_t(box.top + y) * width + box.left) * kind.channels];
          different +=
              !std::equal(row, row + box.width * kind.channels, reader.pixels() + y * reader.stride());
        }
        CHECK_MESSAGE(different == 0, kind.across, "x", kind.down, kind.progressive ? " progressive" : "",
                      " ", box.top, ",", box.left, " ", box.height, "x", box.width, " of ", height, "x",
                      width);
      }
    }
}

TEST_CASE("a frame is what decoding, cutting, resizing and cutting again give") {
  RandomStream random(10, 0);
  PictureReader reader;
  for (const int channels : {1, 3}) {
    const auto bytes = make_jpeg_of(make_rough_picture(90, 140, channels, 4), {.channels = channels});
    Picture whole;
    REQUIRE(decode_jpeg(bytes, whole) == "");
    for (int round = 0; round < 150; ++round) {
      const int height = 1 + static_cast<int>(random.below(120)),
                width = 1 + static_cast<int>(random.below(120));
      const Frame frame{random_box(random, 90, 140), height, width, random_box(random, height, width)};
      CHECK(load(reader, bytes, frame, channels) == slowly(whole, frame));
      CHECK(load(reader, bytes, frame, 4 - channels) == slowly(with_channels(whole, 4 - channels), frame));
    }
  }
}

TEST_CASE("decoding at a fraction is used only where twice the size is there, and stays close") {
  PictureReader reader;
  Picture smooth{400, 600, 3, {}};
  for (int y = 0; y < 400; ++y)
    for (int x = 0; x < 600; ++x)
      for (int c = 0; c < 3; ++c)
        smooth.pixels.push_back(static_cast<uint8_t>(128 + 100 * std::sin(x * 0.05 + y * 0.07 + c)));
  const auto bytes = make_jpeg_of(smooth, {});
  Picture whole;
  REQUIRE(decode_jpeg(bytes, whole) == "");
  for (const auto& [size, same] : {std::pair{201, true}, {200, false}, {90, false}, {40, false}}) {
    for (const Box& part : {Box{0, 0, 400, 600}, Box{0, 101, 400, 477}}) {
      const Frame frame{part, size, size, {0, 0, size, size}};
      const auto close = load(reader, bytes, frame, 3, true), exact = slowly(whole, frame);
      double sum = 0;
      int most = 0;
      for (size_t i = 0; i < close.size(); ++i) {
        sum += std::abs(close[i] - exact[i]);
        most = std::max(most, std::abs(close[i] - exact[i]));
      }
      CHECK((most == 0) == same);
      CHECK(sum / static_cast<double>(close.size()) < 2);
      CHECK(most < 16);
    }
  }
}

TEST_CASE("the frame that evaluation takes: squares, or the middle of what is resized by its shorter side") {
  CHECK(FrameRule{}.frame(30, 40).nothing(30, 40));
  CHECK(FrameRule{20, 0}.frame(30, 40) == Frame{{0, 0, 30, 40}, 20, 20, {0, 0, 20, 20}});
  CHECK(FrameRule{256, 224}.frame(375, 500) == Frame{{0, 0, 375, 500}, 256, 341, {16, 58, 224, 224}});
  CHECK(FrameRule{0, 16}.frame(30, 41) == Frame{{0, 0, 30, 41}, 30, 41, {7, 12, 16, 16}});
  CHECK(FrameRule{0, 16}.frame(30, 43).keep == Box{7, 14, 16, 16});  // 13.5 to the even number
  CHECK_THROWS_WITH_AS((FrameRule{0, 32}.frame(30, 41)), doctest::Contains("41x30 is smaller"), InputError);
  CHECK_THROWS_WITH_AS((FrameRule{16, 32}.check()), doctest::Contains("larger than input.resize"),
                       InputError);
}

TEST_CASE("a JPEG cut off is refused whichever part of it is wanted") {
  const auto whole = make_jpeg_of(make_rough_picture(90, 140, 3, 4), {});
  PictureReader reader;
  std::vector<uint8_t> planes(3 * 8 * 8);
  for (size_t size = 0; size + 2 < whole.size(); size += 13) {
    StoredPicture sample;
    sample.bytes = std::span(whole).first(size);
    std::string why = reader.open(sample);
    if (why.empty()) why = reader.load({{2, 3, 8, 8}, 8, 8, {0, 0, 8, 8}}, 3, false, planes.data());
    CHECK(why != "");
  }
}

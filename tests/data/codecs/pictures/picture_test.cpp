#include "data/codecs/pictures/picture.h"

#include <cstdlib>
#include <doctest/doctest.h>
#include <numeric>

#include <millrace/error.h>

#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/jpeg.h"
#include "data/codecs/pictures/netpbm.h"
#include "support/pictures.h"

using namespace millrace;
using namespace millrace::data;
using millrace::testing::make_jpeg;
using millrace::testing::make_picture;

namespace {

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

int largest_difference(const Picture& a, const Picture& b) {
  int most = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) most = std::max(most, std::abs(a.pixels[i] - b.pixels[i]));
  return most;
}

}  // namespace

TEST_CASE("JPEG pictures, grey and colour, come back nearly as they were encoded") {
  for (const int channels : {1, 3}) {
    const Picture picture = make_picture(19, 33, channels, 7);
    Picture back;
    CHECK(decode_picture(encode_jpeg(picture, 95), back) == "");
    CHECK(back.height == 19);
    CHECK(back.width == 33);
    CHECK(back.channels == channels);
    CHECK(largest_difference(picture, back) <= 8);
  }
}

TEST_CASE("a JPEG cut anywhere before its end is refused with a reason") {
  const std::string whole = make_jpeg(24, 24, 3, 1);
  Picture picture;
  CHECK(decode_picture(bytes_of(whole), picture) == "");
  for (size_t size = 0; size + 2 < whole.size(); ++size)
    CHECK(decode_picture(bytes_of(whole.substr(0, size)), picture) != "");
}

TEST_CASE("damaged JPEG bytes never crash the decoder") {
  const std::string whole = make_jpeg(24, 24, 3, 1);
  Picture picture;
  RandomStream random(3, 0);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    for (uint32_t i = 0; i <= random.below(4); ++i)
      bytes[random.below(static_cast<uint32_t>(bytes.size()))] = static_cast<char>(random.next());
    const std::string why = decode_picture(bytes_of(bytes), picture);
    if (why.empty())
      CHECK(picture.pixels.size() == size_t(picture.height) * picture.width * picture.channels);
  }
}

TEST_CASE("what is no picture is called so") {
  Picture picture;
  CHECK(decode_picture(std::span<const uint8_t>(), picture) == "the file is empty");
  CHECK(decode_picture(bytes_of("<html>not found</html>"), picture) ==
        "it is a web page; pictures are JPEG, PNG, WebP, TIFF, GIF, BMP, PGM or PPM files");
  CHECK(decode_picture(bytes_of("holiday"), picture).starts_with("it is no picture; "));
  const std::string heic = decode_picture(bytes_of("nnnnftypheicnnnn"), picture);
  CHECK(heic ==
        "it is a picture of the kind HEIC, which is not read; convert it, with heif-convert IN OUT.jpg");
}

TEST_CASE("Netpbm keeps every byte, and damaged headers are refused") {
  for (const int channels : {1, 3}) {
    const Picture picture = make_picture(5, 7, channels, 2);
    Picture back;
    CHECK(decode_picture(encode_netpbm(picture), back) == "");
    CHECK(back == picture);
  }
  Picture picture;
  CHECK(decode_netpbm(bytes_of("P5 # comment\n2 1 255\nab"), picture) == "");
  CHECK(picture.pixels == std::vector<uint8_t>{'a', 'b'});
  for (const char* text :
       {"P5", "P5 2", "P5 2 2 255", "P5 2 2 255\nabc", "P5 0 2 255\n", "P5 99999999999999 2 255\n",
        "P5 2 2 65535\nabcdabcd", "P6 60000 60000 255\n", "P5 -2 2 255\nabcd"})
    CHECK_MESSAGE(decode_netpbm(bytes_of(text), picture) != "", text);
}

TEST_CASE("resize gives the bytes of Pillow's bilinear filter, larger and smaller") {
  // Pillow: Image.frombytes("L", (5, 4), bytes(i * 37 % 256 for i in range(20))).resize(size, Image.BILINEAR)
  Picture picture{4, 5, 1, std::vector<uint8_t>(20)};
  for (int i = 0; i < 20; ++i) picture.pixels[i] = static_cast<uint8_t>(i * 37 % 256);
  CHECK(resize(picture, 2, 3).pixels == std::vector<uint8_t>{112, 84, 97, 110, 139, 127});
  CHECK(resize(picture, 6, 7).pixels ==
        std::vector<uint8_t>{0,   21,  48,  74,  100, 127, 148, 93,  114, 104, 39,  65,  92,  113,
                             173, 194, 160, 34,  60,  69,  65,  126, 147, 161, 157, 183, 118, 18,
                             79,  100, 127, 153, 179, 151, 99,  43,  64,  91,  117, 143, 170, 191});
  CHECK(resize(picture, 4, 5) == picture);
}

TEST_CASE("colour and grey are turned into each other") {
  const Picture grey = make_picture(3, 4, 1, 5);
  CHECK(with_channels(with_channels(grey, 3), 1) == grey);
  const Picture colour{1, 3, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255}};
  CHECK(with_channels(colour, 1).pixels == std::vector<uint8_t>{76, 150, 29});
}

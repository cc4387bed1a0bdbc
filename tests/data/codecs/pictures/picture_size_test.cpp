#include "data/codecs/pictures/picture_size.h"

#include <doctest/doctest.h>
#include <span>
#include <string>

#include "support/pictures.h"

using namespace millrace::data;

namespace {

std::span<const uint8_t> jpeg_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string size_of_jpeg(const std::string& file) {
  const auto size = jpeg_size(jpeg_bytes(file));
  return size ? std::to_string(size->width) + "x" + std::to_string(size->height) : "none";
}

/// A marker of that kind with so much behind it; the frame of a picture of 258 × 3.
std::string jpeg_segment(char kind, const std::string& content) {
  const size_t size = content.size() + 2;
  return std::string("\xff") + kind + static_cast<char>(size >> 8) + static_cast<char>(size) + content;
}
const std::string jpeg_begin = "\xff\xd8", jpeg_frame = std::string("\x08\0\x03\x01\x02\x01", 6);

}  // namespace

TEST_CASE("the size of a JPEG stands in its frame, whatever stands before it") {
  CHECK(size_of_jpeg(millrace::testing::make_jpeg(13, 21, 3, 1)) == "21x13");
  CHECK(size_of_jpeg(jpeg_begin + jpeg_segment('\xc0', jpeg_frame)) == "258x3");
  // All kinds of frames, and what are none: tables, arithmetic conditioning, extensions, comments.
  for (const char kind : std::string("\xc0\xc1\xc2\xc3\xc5\xc6\xc7\xc9\xca\xcb\xcd\xce\xcf"))
    CHECK(size_of_jpeg(jpeg_begin + jpeg_segment(kind, jpeg_frame)) == "258x3");
  for (const char kind : std::string("\xc4\xc8\xcc\xdb\xe0\xe1\xef\xfe\xd0\x01")) {
    CAPTURE(static_cast<int>(kind));
    const bool alone = kind == '\xd0' || kind == '\x01';
    const std::string before = alone ? std::string("\xff") + kind : jpeg_segment(kind, "JFIF and more");
    CHECK(size_of_jpeg(jpeg_begin + before + jpeg_segment('\xc2', jpeg_frame)) == "258x3");
  }
  // Filled up.
  CHECK(size_of_jpeg(jpeg_begin + "\xff\xff\xff" + jpeg_segment('\xc0', jpeg_frame)) == "258x3");
}

TEST_CASE("what has no frame, or is cut off before its size, has none") {
  const std::string whole = jpeg_begin + jpeg_segment('\xe0', "JFIF") + jpeg_segment('\xc0', jpeg_frame);
  for (size_t size = 0; size < whole.size(); ++size) CHECK(size_of_jpeg(whole.substr(0, size)) == "none");
  CHECK(size_of_jpeg(whole) == "258x3");
  CHECK(size_of_jpeg(jpeg_begin + "\xff\xd9" + jpeg_segment('\xc0', jpeg_frame)) == "none");
  CHECK(size_of_jpeg(jpeg_begin + "\xff\xda" + jpeg_segment('\xc0', jpeg_frame)) == "none");
  CHECK(size_of_jpeg(jpeg_begin + "x" + jpeg_segment('\xc0', jpeg_frame)) == "none");
  CHECK(size_of_jpeg("\xff\xd9" + jpeg_segment('\xc0', jpeg_frame)) == "none");
  const std::string without_rows("\x08\0\0\x01\x02\x01", 6);
  CHECK(size_of_jpeg(jpeg_begin + jpeg_segment('\xc0', without_rows)) == "none");
}

#include "data/formats/content.h"

#include <doctest/doctest.h>
#include <string>

#include "support/pictures.h"

using namespace millrace::data;

namespace {

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string size_of(const std::string& file) {
  int width = -1, height = -1;
  return jpeg_size(bytes_of(file), width, height) ? std::to_string(width) + "x" + std::to_string(height)
                                                  : "none";
}

/// A marker of that kind with so much behind it; the frame of a picture of 258 × 3.
std::string segment(char kind, const std::string& content) {
  const size_t size = content.size() + 2;
  return std::string("\xff") + kind + static_cast<char>(size >> 8) + static_cast<char>(size) + content;
}
const std::string begin = "\xff\xd8", frame = std::string("\x08\0\x03\x01\x02\x01", 6);

}  // namespace

TEST_CASE("the size of a JPEG stands in its frame, whatever stands before it") {
  CHECK(size_of(millrace::testing::make_jpeg(13, 21, 3, 1)) == "21x13");
  CHECK(size_of(begin + segment('\xc0', frame)) == "258x3");
  // All kinds of frames, and what are none: tables, arithmetic conditioning, extensions, comments.
  for (const char kind : std::string("\xc0\xc1\xc2\xc3\xc5\xc6\xc7\xc9\xca\xcb\xcd\xce\xcf"))
    CHECK(size_of(begin + segment(kind, frame)) == "258x3");
  for (const char kind : std::string("\xc4\xc8\xcc\xdb\xe0\xe1\xef\xfe\xd0\x01")) {
    CAPTURE(static_cast<int>(kind));
    const bool alone = kind == '\xd0' || kind == '\x01';
    const std::string before = alone ? std::string("\xff") + kind : segment(kind, "JFIF and more");
    CHECK(size_of(begin + before + segment('\xc2', frame)) == "258x3");
  }
  CHECK(size_of(begin + "\xff\xff\xff" + segment('\xc0', frame)) == "258x3");  // filled up
}

TEST_CASE("what has no frame, or is cut off before its size, has none") {
  const std::string whole = begin + segment('\xe0', "JFIF") + segment('\xc0', frame);
  for (size_t size = 0; size < whole.size() - 1; ++size) CHECK(size_of(whole.substr(0, size)) == "none");
  CHECK(size_of(whole.substr(0, whole.size() - 1)) == "258x3");
  CHECK(size_of(begin + "\xff\xd9" + segment('\xc0', frame)) == "none");
  CHECK(size_of(begin + "\xff\xda" + segment('\xc0', frame)) == "none");
  CHECK(size_of(begin + "x" + segment('\xc0', frame)) == "none");
  CHECK(size_of("\xff\xd9" + segment('\xc0', frame)) == "none");
  CHECK(size_of(begin + segment('\xc0', std::string("\x08\0\0\x01\x02\x01", 6))) == "none");  // no rows
}

TEST_CASE("bytes look like pictures, sounds, text or nothing that is known") {
  CHECK(content_kind(bytes_of(millrace::testing::make_jpeg(8, 8, 3, 1))) == ColumnKind::picture);
  CHECK(content_kind(bytes_of(std::string("RIFF\x24\0\0\0WAVEfmt ", 16))) == ColumnKind::audio);
  CHECK(content_kind(bytes_of("fLaC and more")) == ColumnKind::audio);
  CHECK(content_kind(bytes_of("a word, \xc3\xa4\n")) == ColumnKind::text);
  CHECK(content_kind(bytes_of("")) == ColumnKind::bytes);
  CHECK(content_kind(bytes_of("a\x01")) == ColumnKind::bytes);
  CHECK(content_kind(bytes_of("a\xff")) == ColumnKind::bytes);
  CHECK(file_kind("/no/such/file") == ColumnKind::bytes);
}

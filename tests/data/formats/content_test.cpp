#include "data/formats/content.h"

#include <doctest/doctest.h>
#include <string>

#include "support/pictures.h"

using namespace millrace::data;

namespace {

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

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

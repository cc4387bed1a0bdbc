#include "base/utf8.h"

#include <doctest/doctest.h>

using namespace millrace;

TEST_CASE("texts of any bytes are stored as UTF-8 and come back") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const std::string& text :
       {std::string(), std::string("cat"), std::string("gr\xc3\xbc\xc3\x9f"), std::string("gr\xfc\xdf"),
        std::string("\xff"), std::string("\1"), std::string("\1\xff"), std::string("\xc3"),
        std::string(3, '\0'), std::string("\\xe9"), std::string("\\\\x\\"), all}) {
    CAPTURE(text);
    CHECK(is_utf8(stored_text(text)));
    CHECK(text_of_stored(stored_text(text)) == text);
  }
  CHECK(stored_text("gr\xc3\xbc\xc3\x9f") == "gr\xc3\xbc\xc3\x9f");
  CHECK(stored_text("h\xe9") != stored_text("h\xea"));
  CHECK(stored_text("h\xe9 \xc3\xa9") == "h\\xe9 \xc3\xa9");
  CHECK(stored_text("h\xe9") != stored_text("h\\xe9"));
  CHECK(stored_text("C:\\dir\\x") == "C:\\dir\\x5cx");
  // Cut off, or by hand.
  for (const char* text : {"\\x", "\\xg0", "\\x4", "a\\"}) CHECK(text_of_stored(text) == text);
}

TEST_CASE("it is said where a text is no UTF-8") {
  CHECK(utf8_bytes("gr\xc3\xbc\xc3\x9f") == 6);
  for (const char* wrong :
       {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"}) {
    CHECK(utf8_bytes(wrong) == 0);
    CHECK(utf8_bytes(std::string("\xc3\xbc") + wrong + "a") == 2);
  }
}

TEST_CASE("messages say nothing to a terminal") {
  CHECK(printable("a\x1b[2Jb\x7f\r") == "a\\x1b[2Jb\\x7f\\x0d");
  CHECK(printable(std::string("\0x", 2)) == "\\x00x");
  CHECK(printable("two\nlines\tgr\xc3\xbc\xc3\x9f \xff") == "two\nlines\tgr\xc3\xbc\xc3\x9f \xff");
}
